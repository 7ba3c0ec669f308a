import { describe, expect, it } from '@jest/globals';
import { ManualClock } from '../runtime/manual-clock.js';
import { sendDelivery } from './delivery-sender.js';

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
    remoteAccess = false,
  } = {},
) {
  return sendDelivery(delivery, { fetch, clock, timeoutMs, remoteAccess }, cancel);
}

/** A receiver that never responds. */
const silent: typeof globalThis.fetch = (_, init) =>
  new Promise((_, reject) => {
    init?.signal?.addEventListener('abort', () => reject(new Error('aborted')));
  });

describe('sendDelivery', () => {
  it('sendDelivery() sends the bytes and headers without changes and does not follow redirects', async () => {
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

  it.each([200, 201, 202, 204, 299])(
    'sendDelivery() treats the status %i as an acknowledgement',
    async (status) => {
      const { response, failure } = await send(async () => new Response(null, { status }));
      expect(failure).toBeUndefined();
      expect(response?.status).toBe(status);
    },
  );

  it.each([
    [301, 'redirect'],
    [307, 'redirect'],
    [304, 'redirect'],
    [400, 'status'],
    [401, 'status'],
    [500, 'status'],
    [503, 'status'],
  ])('sendDelivery() reports the status %i as a failure with code %s', async (status, code) => {
    const { response, failure } = await send(async () => new Response(null, { status }));
    expect(failure).toMatchObject({ code });
    expect(response?.status).toBe(status);
  });

  it('sendDelivery() fails with code timeout after 30 seconds, and not before', async () => {
    const clock = new ManualClock(0);
    const result = send(silent, { clock });
    clock.advance(29_999);
    expect(clock.pending).toBe(1);
    clock.advance(1);
    await expect(result).resolves.toEqual({
      response: undefined,
      failure: { code: 'timeout', message: 'no response within 30000 ms' },
    });
  });

  it('sendDelivery() fails with code cancelled when its signal aborts', async () => {
    const abort = new AbortController();
    const result = send(silent, { cancel: abort.signal });
    abort.abort();
    expect((await result).failure?.code).toBe('cancelled');
  });

  it('sendDelivery() reports the cause of a failed connection', async () => {
    const cause = Object.assign(new Error('connect refused'), { code: 'ECONNREFUSED' });
    const { failure } = await send(async () => {
      throw new TypeError('fetch failed', { cause });
    });
    expect(failure).toEqual({ code: 'connection', message: 'ECONNREFUSED: connect refused' });
  });

  it('sendDelivery() keeps the first 4,096 bytes of an endless response and stops reading', async () => {
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
    const { response } = await send(async () => new Response(body));
    expect(response?.body).toBe('a'.repeat(4096));
    expect(read).toBe(5000);
  });

  it('SE-14 sendDelivery() keeps 256 bytes and the content type of a response if other machines can reach the emulator', async () => {
    const headers = { 'content-type': 'text/plain', 'x-secret': 'of-the-network' };
    const { response } = await send(async () => new Response('a'.repeat(5000), { headers }), {
      remoteAccess: true,
    });
    expect(response).toEqual({
      status: 200,
      headers: { 'content-type': 'text/plain' },
      body: 'a'.repeat(256),
    });
  });

  it('sendDelivery() treats a 2xx response with an incomplete body as an acknowledgement', async () => {
    const body = new ReadableStream({ pull: (controller) => controller.error(new Error('cut')) });
    const { response, failure } = await send(async () => new Response(body));
    expect(failure).toBeUndefined();
    expect(response).toMatchObject({ status: 200, body: '' });
  });

  it('sendDelivery() clears its timer after the response', async () => {
    const clock = new ManualClock(0);
    await send(async () => new Response(), { clock });
    expect(clock.pending).toBe(0);
  });
});
