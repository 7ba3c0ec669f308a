import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { CapturedLog } from '../../../../test/support/log/captured-log.js';
import { FakeRuntime } from '../../../../test/support/time/fake-runtime.js';
import { turns } from '../../../../test/support/time/waiting.js';
import type { EventReceiver } from '../inbox/receive/event-receiver.js';
import { WebhookEndpoint } from './webhook-routes.js';
import type { WebhookRoutes } from './webhook-routes.js';
import { RejectionLog } from './webhook-rejection.js';
import type { WebhookVerifier } from './webhook-verifier.js';

Logger.overrideLogger(false);

type Handler = (request: object, response: unknown) => Promise<void>;

/** An endpoint with a verifier and a receiver that take no time. Records the order of its responses. */
class RecordedEndpoint {
  readonly written: string[] = [];
  #handler: Handler = async () => {};

  constructor(readonly type: string) {
    const httpAdapter = {
      getType: () => type,
      post: (_path: string, handler: Handler) => (this.#handler = handler),
    };
    const verifier = { verify: async (request: object) => request };
    const receiver = { receive: async ({ id }: { id: string }) => ({ status: 'stored', id }) };
    new WebhookEndpoint(
      { httpAdapter } as unknown as HttpAdapterHost,
      { endpointPaths: () => ['/hook'] } as WebhookRoutes,
      verifier as unknown as WebhookVerifier,
      receiver as unknown as EventReceiver,
      null!,
    ).onModuleInit();
  }

  /** Starts a request. `onWrite` runs when its response is written. */
  request(id: string, onWrite = () => {}): Promise<void> {
    const write = () => {
      this.written.push(id);
      onWrite();
    };
    const response = { setHeader: () => {}, code: () => response, send: write, end: write };
    return this.#handler({ id }, response);
  }
}

/** Waits until every promise that can resolve without another turn of the event loop has resolved. */
const microtasks = () => new Promise<void>((resolve) => process.nextTick(resolve));

describe.each(['express', 'fastify'])('WebhookEndpoint on %s', (type) => {
  let endpoint: RecordedEndpoint;
  beforeEach(() => {
    endpoint = new RecordedEndpoint(type);
  });

  it('WebhookEndpoint writes the responses of one turn of the event loop together, at the end of the turn', async () => {
    const first = endpoint.request('first');
    await microtasks();
    setImmediate(() => endpoint.written.push('other work'));
    const second = endpoint.request('second');
    await microtasks();
    expect(endpoint.written).toEqual([]);
    await Promise.all([first, second]);
    await turns(1);
    expect(endpoint.written).toEqual(['first', 'second', 'other work']);
  });

  it('WebhookEndpoint writes the response of the next turn at the end of that turn', async () => {
    await endpoint.request('first');
    const second = endpoint.request('second');
    await microtasks();
    expect(endpoint.written).toEqual(['first']);
    await second;
    expect(endpoint.written).toEqual(['first', 'second']);
  });

  it('WebhookEndpoint writes the other responses of a turn if writing one of them fails', async () => {
    const fails = endpoint.request('fails', () => {
      throw new Error('the socket is gone');
    });
    const others = [endpoint.request('second'), endpoint.request('third')];
    await expect(fails).rejects.toThrow('the socket is gone');
    await Promise.all(others);
    expect(endpoint.written).toEqual(['fails', 'second', 'third']);
  });
});

describe('WebhookEndpoint', () => {
  let log: CapturedLog;
  beforeEach(() => Logger.overrideLogger((log = new CapturedLog())));
  afterEach(() => Logger.overrideLogger(['error']));

  it('SE-08 WebhookEndpoint responds with 503 to an unexpected error, and logs it once per minute', async () => {
    const runtime = new FakeRuntime();
    const verifier = { verify: async () => Promise.reject(new TypeError('broken verifier')) };
    const endpoint = new WebhookEndpoint(
      new HttpAdapterHost(),
      null!,
      verifier as unknown as WebhookVerifier,
      null!,
      new RejectionLog(runtime),
    );
    const request = { method: 'POST', headers: {} };
    const response = await endpoint.receive(request);
    expect(response).toMatchObject({ status: 503, body: { code: 'inbox_unavailable' } });
    expect(JSON.stringify(response)).not.toContain('broken verifier');
    for (let n = 0; n < 100; n += 1) {
      runtime.advance(599);
      await endpoint.receive(request);
    }
    expect(log.lines).toHaveLength(1);
    expect(log.lines[0]).toMatch(
      /^error A webhook request failed unexpectedly: TypeError: broken verifier\n {4}at /,
    );
    runtime.advance(100);
    expect(log.lines).toHaveLength(2);
    expect(log.lines[1]).toContain('(99 more since the previous line)');
  });
});
