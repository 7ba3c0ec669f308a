import { describe, expect, it } from '@jest/globals';
import { ManualClock } from '../clock/manual.clock.js';
import { sendDelivery } from './delivery.sender.js';

const delivery = {
  url: 'https://shop.example/webhooks',
  headers: { 'Content-Type': 'application/json' },
  body: new Uint8Array([0x7b, 0x7d]),
};

function send(
  fetch: typeof globalThis.fetch,
  {
    clock = new ManualClock(0),
    cancel = new AbortController().signal,
    timeoutMs = 30_000,
    exposed = false,
  } = {},
) {
  return sendDelivery(delivery, { fetch, clock, timeoutMs, exposed }, cancel);
}

/** A receiver that never answers. */
const silent: typeof globalThis.fetch = (_, init) =>
  new Promise((_, reject) => {
    init?.signal?.addEventListener('abort', () => reject(new Error('aborted')));
  });

describe('sendDelivery', () => {
  it('posts the bytes and headers as they are and follows no redirect', async () => {
    const sent: [unknown, RequestInit | undefined][] = [];
    await send(async (url, init) => {
      sent.push([url, init]);
      return new Response();
    });
    expect(sent).toHaveLength(1);
    expect(sent[0]?.[0]).toBe(delivery.url);
    expect(sent[0]?.[1]).toMatchObject({
      method: 'POST',
      headers: delivery.headers,
      body: delivery.body,
      redirect: 'manual',
    });
  });

  it.each([200, 201, 202, 204, 299])('takes %i for an acknowledgement', async (status) => {
    const { answer, failure } = await send(async () => new Response(null, { status }));
    expect(failure).toBeUndefined();
    expect(answer?.status).toBe(status);
  });

  it.each([
    [301, 'redirect'],
    [307, 'redirect'],
    [304, 'redirect'],
    [400, 'status'],
    [401, 'status'],
    [500, 'status'],
    [503, 'status'],
  ])('takes %i for a failure of kind %s', async (status, code) => {
    const { answer, failure } = await send(async () => new Response(null, { status }));
    expect(failure).toMatchObject({ code });
    expect(answer?.status).toBe(status);
  });

  it('gives up when the time is over, and not before', async () => {
    const clock = new ManualClock(0);
    const outcome = send(silent, { clock });
    clock.advance(29_999);
    expect(clock.pending).toBe(1);
    clock.advance(1);
    await expect(outcome).resolves.toEqual({
      answer: undefined,
      failure: { code: 'timeout', message: 'no answer within 30000 ms' },
    });
  });

  it('ends with its run and says that it was cancelled', async () => {
    const run = new AbortController();
    const outcome = send(silent, { cancel: run.signal });
    run.abort();
    expect((await outcome).failure?.code).toBe('cancelled');
  });

  it('tells the cause of a connection that failed', async () => {
    const cause = Object.assign(new Error('connect refused'), { code: 'ECONNREFUSED' });
    const { failure } = await send(async () => {
      throw new TypeError('fetch failed', { cause });
    });
    expect(failure).toEqual({ code: 'connection', message: 'ECONNREFUSED: connect refused' });
  });

  it('shows the first 4,096 bytes of an endless answer and reads no further', async () => {
    let read = 0;
    const body = new ReadableStream<Uint8Array>(
      {
        pull: (controller) => {
          read += 1000;
          controller.enqueue(new Uint8Array(1000).fill(0x61));
        },
      },
      { highWaterMark: 0 },
    );
    const { answer } = await send(async () => new Response(body));
    expect(answer?.body).toBe('a'.repeat(4096));
    expect(read).toBe(5000);
  });

  it('SE-14 shows 256 bytes and the type of an answer if others can reach the emulator', async () => {
    const headers = { 'content-type': 'text/plain', 'x-secret': 'of-the-network' };
    const { answer } = await send(async () => new Response('a'.repeat(5000), { headers }), {
      exposed: true,
    });
    expect(answer).toEqual({
      status: 200,
      headers: { 'content-type': 'text/plain' },
      body: 'a'.repeat(256),
    });
  });

  it('lets the status decide where the body breaks off', async () => {
    const body = new ReadableStream({ pull: (controller) => controller.error(new Error('cut')) });
    const { answer, failure } = await send(async () => new Response(body));
    expect(failure).toBeUndefined();
    expect(answer).toMatchObject({ status: 200, body: '' });
  });

  it('leaves no timer behind', async () => {
    const clock = new ManualClock(0);
    await send(async () => new Response(), { clock });
    expect(clock.pending).toBe(0);
  });
});
