import { randomBytes } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from '@jest/globals';
import { AxiosHeaders, type AxiosAdapter, type AxiosResponse } from 'axios';
import type { Dispatcher } from 'undici';
import { UndiciExchange } from './transport.js';
import type { ResponseBody } from './http-exchange.js';

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
    headers: {},
    body: Buffer.from('{}'),
    signal: abort.signal,
    maxBytes,
  });
  const headers = new AxiosHeaders({ 'x-auth-token': 'Bearer t', authorization: false });
  const send = (): Promise<AxiosResponse<ResponseBody>> =>
    (exchange.config.adapter as AxiosAdapter)({ headers });
  return { exchange, controller, calls, dispatched, abort, send };
}

describe('UndiciExchange', () => {
  it('UndiciExchange dispatches to the host of the URL, without headers whose value is false', () => {
    const { send, dispatched } = createExchange();
    void send();
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
    const { exchange, send, dispatched, abort } = createExchange();
    abort.abort();
    await expect(send()).rejects.toThrow('aborted');
    expect(exchange.unsent).toBe(true);
    expect(dispatched).toHaveLength(0);
  });

  it('HT-24 UndiciExchange reports its request as unsent until undici starts to write it, and prevents a second dispatch', async () => {
    const { exchange, send, controller, abort, calls } = createExchange();
    expect(exchange.unsent).toBe(false);
    const sent = send();
    expect(exchange.unsent).toBe(true);
    exchange.onRequestStart(controller);
    expect(exchange.unsent).toBe(false);
    expect(() => exchange.onRequestStart(controller)).toThrow('over');
    abort.abort();
    expect(calls).toEqual(['abort']);
    exchange.onResponseError(controller, new Error('aborted'));
    await expect(sent).rejects.toThrow('aborted');
  });

  it('UndiciExchange pauses the connection while the decompressor is busy, and resumes it afterwards', async () => {
    const { exchange, send, controller, calls } = createExchange();
    const sent = send();
    const plain = randomBytes(500_000);
    exchange.onRequestStart(controller);
    exchange.onResponseStart(controller, 200, { 'content-encoding': 'gzip' });
    const compressed = gzipSync(plain);
    exchange.onResponseData(controller, compressed.subarray(0, 400_000));
    expect(calls.at(-1)).toBe('pause');
    while (calls.at(-1) !== 'resume') await new Promise((resolve) => setImmediate(resolve));
    exchange.onResponseData(controller, compressed.subarray(400_000));
    exchange.onResponseEnd();
    const { data } = await sent;
    expect(data.bytes.equals(plain)).toBe(true);
  });

  it('HT-27 UndiciExchange keeps a body up to maxBytes, then closes the connection', async () => {
    const { exchange, send, controller, calls } = createExchange(10);
    const sent = send();
    exchange.onRequestStart(controller);
    exchange.onResponseStart(controller, 200, {});
    exchange.onResponseData(controller, Buffer.from('01234'));
    exchange.onResponseData(controller, Buffer.from('56789'));
    expect(calls).toEqual([]);
    exchange.onResponseData(controller, Buffer.from('x'));
    expect(calls).toEqual(['abort']);
    const { data } = await sent;
    exchange.onResponseError(controller, new Error('aborted'));
    expect(data).toMatchObject({ bytes: Buffer.from('0123456789'), whole: false });
    expect(data.error).toBeUndefined();
  });
});
