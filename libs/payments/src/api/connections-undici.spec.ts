import { randomBytes } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from '@jest/globals';
import type { Dispatcher } from 'undici';
import { UndiciExchange } from './transport.js';

/** Creates an exchange with a dispatcher that records the requests. */
function createExchange(maxBytes = 1_000_000) {
  const calls: string[] = [];
  const controller = {
    pause: () => calls.push('pause'),
    resume: () => calls.push('resume'),
    abort: () => calls.push('abort'),
  } as unknown as Dispatcher.DispatchController;
  const dispatched: Dispatcher.DispatchOptions[] = [];
  const dispatcher = {
    dispatch: (options: Dispatcher.DispatchOptions) => dispatched.push(options) > 0,
  } as unknown as Dispatcher;
  const abort = new AbortController();
  const exchange = new UndiciExchange(dispatcher, {
    method: 'POST',
    url: 'http://service.test:8080/v1/things?a=b',
    headers: { 'x-auth-token': 'Bearer t' },
    body: Buffer.from('{}'),
    signal: abort.signal,
    maxBytes,
  });
  return { exchange, controller, calls, dispatched, abort };
}

describe('UndiciExchange', () => {
  it('UndiciExchange dispatches to the host of the URL', () => {
    const { exchange, dispatched } = createExchange();
    void exchange.send();
    expect(dispatched).toEqual([
      {
        origin: 'http://service.test:8080',
        path: '/v1/things?a=b',
        method: 'POST',
        headers: { 'x-auth-token': 'Bearer t' },
        body: Buffer.from('{}'),
      },
    ]);
  });

  it('UndiciExchange does not dispatch a request whose signal was already aborted', async () => {
    const { exchange, dispatched, abort } = createExchange();
    abort.abort();
    expect(await exchange.send()).toMatchObject({ kind: 'failure', unsent: true });
    expect(dispatched).toHaveLength(0);
  });

  it('HT-24 UndiciExchange reports its request as unsent until undici starts to write it, and prevents a second dispatch of the request', async () => {
    const unsent = createExchange();
    const notWritten = unsent.exchange.send();
    unsent.exchange.onResponseError(undefined, new Error('closed'));
    expect(await notWritten).toMatchObject({ kind: 'failure', unsent: true });
    const { exchange, controller, abort, calls } = createExchange();
    const sent = exchange.send();
    exchange.onRequestStart(controller);
    expect(() => exchange.onRequestStart(controller)).toThrow('over');
    abort.abort();
    expect(calls).toEqual(['abort']);
    exchange.onResponseError(controller, new Error('aborted'));
    expect(await sent).toMatchObject({ kind: 'failure', unsent: false });
  });

  it('UndiciExchange pauses the connection while the decompressor is busy, and resumes it afterwards', async () => {
    const { exchange, controller, calls } = createExchange();
    const sent = exchange.send();
    const plain = randomBytes(500_000);
    exchange.onRequestStart(controller);
    exchange.onResponseStart(controller, 200, { 'content-encoding': 'gzip' });
    const compressed = gzipSync(plain);
    exchange.onResponseData(controller, compressed.subarray(0, 400_000));
    expect(calls.at(-1)).toBe('pause');
    while (calls.at(-1) !== 'resume') await new Promise((resolve) => setImmediate(resolve));
    exchange.onResponseData(controller, compressed.subarray(400_000));
    exchange.onResponseEnd();
    expect(await sent).toMatchObject({ kind: 'response', body: plain });
  });

  it('HT-27 UndiciExchange keeps a body up to maxBytes, then closes the connection', async () => {
    const { exchange, controller, calls } = createExchange(10);
    const sent = exchange.send();
    exchange.onRequestStart(controller);
    exchange.onResponseStart(controller, 200, {});
    exchange.onResponseData(controller, Buffer.from('01234'));
    exchange.onResponseData(controller, Buffer.from('56789'));
    expect(calls).toEqual([]);
    exchange.onResponseData(controller, Buffer.from('x'));
    expect(calls).toEqual(['abort']);
    exchange.onResponseError(controller, new Error('aborted'));
    expect(await sent).toMatchObject({ kind: 'failure', reason: 'response_too_large' });
  });
});
