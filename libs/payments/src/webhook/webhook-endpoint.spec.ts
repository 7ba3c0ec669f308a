import { beforeEach, describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import type { HttpAdapterHost } from '@nestjs/core';
import { turns } from '../../../../test/support/time/waiting.js';
import type { PaymentInbox } from '../inbox/payment-inbox.js';
import { WebhookEndpoint } from './webhook-endpoint.js';
import type { WebhookRoutes } from './webhook-routes.js';
import type { WebhookVerifier } from './webhook-verifier.js';

Logger.overrideLogger(false);

type Handler = (request: object, response: unknown) => Promise<void>;

/** What an endpoint with a verifier and an inbox that take no time does, in the order in which it does it. */
class EndpointBench {
  readonly written: string[] = [];
  #handler: Handler = async () => {};

  constructor(readonly type: string) {
    const httpAdapter = {
      getType: () => type,
      post: (_path: string, handler: Handler) => (this.#handler = handler),
    };
    const verifier = { verify: async (request: object) => request };
    const inbox = { receive: async ({ id }: { id: string }) => ({ status: 'stored', id }) };
    new WebhookEndpoint(
      { httpAdapter } as unknown as HttpAdapterHost,
      { endpointPaths: () => ['/hook'] } as WebhookRoutes,
      verifier as unknown as WebhookVerifier,
      inbox as unknown as PaymentInbox,
      null!,
    ).onModuleInit();
  }

  /** Starts a request. `onWrite` runs when its answer is written. */
  request(id: string, onWrite = () => {}): Promise<void> {
    const write = () => {
      this.written.push(id);
      onWrite();
    };
    const response = { setHeader: () => {}, code: () => response, send: write, end: write };
    return this.#handler({ id }, response);
  }
}

/** Lets every promise that can settle in this turn of the event loop settle. */
const settle = () => new Promise<void>((resolve) => process.nextTick(resolve));

describe.each(['express', 'fastify'])('the answers of WebhookEndpoint on %s', (type) => {
  let bench: EndpointBench;
  beforeEach(() => {
    bench = new EndpointBench(type);
  });

  it('of one turn of the event loop are written together, at its end', async () => {
    const first = bench.request('first');
    await settle();
    setImmediate(() => bench.written.push('other work'));
    const second = bench.request('second');
    await settle();
    expect(bench.written).toEqual([]);
    await Promise.all([first, second]);
    await turns(1);
    expect(bench.written).toEqual(['first', 'second', 'other work']);
  });

  it('of the next turn are written at the end of that turn', async () => {
    await bench.request('first');
    const second = bench.request('second');
    await settle();
    expect(bench.written).toEqual(['first']);
    await second;
    expect(bench.written).toEqual(['first', 'second']);
  });

  it('are written although writing another one of that turn fails', async () => {
    const fails = bench.request('fails', () => {
      throw new Error('the socket is gone');
    });
    const others = [bench.request('second'), bench.request('third')];
    await expect(fails).rejects.toThrow('the socket is gone');
    await Promise.all(others);
    expect(bench.written).toEqual(['fails', 'second', 'third']);
  });
});
