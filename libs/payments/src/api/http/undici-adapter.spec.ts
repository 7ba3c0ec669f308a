import { randomBytes } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from '@jest/globals';
import { AxiosHeaders, type AxiosAdapter, type AxiosResponse } from 'axios';
import type { Dispatcher } from 'undici';
import type { AnswerBody } from './answer-body.js';
import { UndiciExchange } from './undici-adapter.js';

/** An exchange whose dispatcher is the test. */
function exchange(maxBytes = 1_000_000) {
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
  const end = new AbortController();
  const made = new UndiciExchange(dispatcher, {
    method: 'POST',
    url: 'http://service.test:8080/v1/things?a=b',
    headers: {},
    body: Buffer.from('{}'),
    signal: end.signal,
    maxBytes,
  });
  const headers = new AxiosHeaders({ 'x-auth-token': 'Bearer t', authorization: false });
  const send = (): Promise<AxiosResponse<AnswerBody>> =>
    (made.config.adapter as AxiosAdapter)({ headers });
  return { made, controller, calls, dispatched, end, send };
}

describe('UndiciExchange', () => {
  it('sends to the host of the URL, without the headers that are false', () => {
    const { send, dispatched } = exchange();
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

  it('does not dispatch a request that was aborted before', async () => {
    const { made, send, dispatched, end } = exchange();
    end.abort();
    await expect(send()).rejects.toThrow('aborted');
    expect(made.unsent).toBe(true);
    expect(dispatched).toHaveLength(0);
  });

  it('HT-24 is unsent until undici begins to write it, and is not sent twice', async () => {
    const { made, send, controller, end, calls } = exchange();
    expect(made.unsent).toBe(false);
    const sent = send();
    expect(made.unsent).toBe(true);
    made.onRequestStart(controller);
    expect(made.unsent).toBe(false);
    expect(() => made.onRequestStart(controller)).toThrow('over');
    end.abort();
    expect(calls).toEqual(['abort']);
    made.onResponseError(controller, new Error('aborted'));
    await expect(sent).rejects.toThrow('aborted');
  });

  it('pauses the connection while it decompresses', async () => {
    const { made, send, controller, calls } = exchange();
    const sent = send();
    const plain = randomBytes(500_000);
    made.onRequestStart(controller);
    made.onResponseStart(controller, 200, { 'content-encoding': 'gzip' });
    const compressed = gzipSync(plain);
    made.onResponseData(controller, compressed.subarray(0, 400_000));
    expect(calls.at(-1)).toBe('pause');
    while (calls.at(-1) !== 'resume') await new Promise((resolve) => setImmediate(resolve));
    made.onResponseData(controller, compressed.subarray(400_000));
    made.onResponseEnd();
    const { data } = await sent;
    expect(data.bytes.equals(plain)).toBe(true);
  });

  it('HT-27 cuts an answer at the cap and closes its connection', async () => {
    const { made, send, controller, calls } = exchange(10);
    const sent = send();
    made.onRequestStart(controller);
    made.onResponseStart(controller, 200, {});
    made.onResponseData(controller, Buffer.from('01234'));
    made.onResponseData(controller, Buffer.from('56789'));
    expect(calls).toEqual([]);
    made.onResponseData(controller, Buffer.from('x'));
    expect(calls).toEqual(['abort']);
    const { data } = await sent;
    made.onResponseError(controller, new Error('aborted'));
    expect(data).toMatchObject({ bytes: Buffer.from('0123456789'), whole: false });
    expect(data.error).toBeUndefined();
  });
});
