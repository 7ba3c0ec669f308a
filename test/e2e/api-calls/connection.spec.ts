import type { ServerResponse } from 'node:http';
import { expect, it, jest } from '@jest/globals';
import { describeWithEachAdapter } from '../../support/api/api-harness.js';
import { turns, until } from '../../support/time/waiting.js';
import { silence } from '../../support/api/scripted-service.js';

describeWithEachAdapter('connections and signals', (harness) => {
  it('HT-28 1,000 sequential calls use at most 3 connections', async () => {
    const { payments } = await harness.boot();
    for (let n = 0; n < 1_000; n += 1) await payments.getTransaction(String(n));
    expect(harness.service.calls).toHaveLength(1_000);
    // One connection is for the token. The calls need up to two connections, because a connection may not be free yet
    // when the next call starts.
    expect(harness.service.connections).toBeLessThanOrEqual(3);
  });

  it('HT-29 a call whose signal is already aborted sends no request', async () => {
    const { payments } = await harness.boot();
    const call = payments.post('/v1/things', { signal: AbortSignal.abort() });
    await expect(call).rejects.toMatchObject({ code: 'aborted', attempts: 0 });
    expect(harness.service.tokenRequests).toHaveLength(0);
  });

  it.each([
    ['while it waits for a response', silence],
    [
      'while it reads the response',
      (_: unknown, response: ServerResponse) => {
        response.writeHead(200, { 'content-length': '100' });
        response.write('{"a":');
      },
    ],
  ])('HT-29 an AbortSignal aborts a call %s', async (_, script) => {
    const { service } = harness;
    service.onCall = script;
    const { payments, runtime } = await harness.boot();
    const controller = new AbortController();
    const { signal } = controller;
    const get = expect(payments.get('/v1/things', { signal })).rejects.toMatchObject({
      code: 'aborted',
    });
    // A POST that was sent has an unknown outcome, also if its caller aborted it.
    const post = expect(payments.post('/v1/things', { signal })).rejects.toMatchObject({
      code: 'outcome_unknown',
      reason: 'aborted',
    });
    await until(() => service.calls.length === 2);
    await turns(20);
    controller.abort(new Error('a reason that the module does not use'));
    await Promise.all([get, post]);
    expect(runtime.pending).toBe(0);
    // The connections of aborted calls are closed.
    await until(() => [...service.sockets].every((socket) => socket.destroyed), 'the close');
  });

  it('HT-29 a finished call removes all its listeners from the signal', async () => {
    const { payments } = await harness.boot();
    const { signal } = new AbortController();
    const adds = jest.spyOn(signal, 'addEventListener');
    const removes = jest.spyOn(signal, 'removeEventListener');
    await payments.get('/v1/things', { signal });
    const removed = removes.mock.calls.map(([, listener]) => listener);
    expect(adds.mock.calls.length).toBeGreaterThan(0);
    for (const [, listener] of adds.mock.calls) expect(removed).toContain(listener);
  });
});
