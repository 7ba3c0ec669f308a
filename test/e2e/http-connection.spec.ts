import type { ServerResponse } from 'node:http';
import { expect, it, jest } from '@jest/globals';
import type { RequestFacts } from '../../libs/payments/src/api/api-options.js';
import { describeWithEachAdapter } from '../support/api/api-harness.js';
import { turns, until } from '../support/time/waiting.js';
import { hangUp, json, silence } from '../support/api/scripted-service.js';

describeWithEachAdapter('connections, signals and onRequest', (harness, adapter) => {
  it('HT-28 1,000 sequential calls use at most 3 connections', async () => {
    const { payments } = await harness.boot();
    for (let n = 0; n < 1_000; n += 1) await payments.getTransaction(String(n));
    expect(harness.service.calls).toHaveLength(1_000);
    // One connection for the token, two for the calls: a connection may not be free yet when the next call starts.
    expect(harness.service.connections).toBeLessThanOrEqual(3);
  }, 30_000);

  // The module cannot limit the connections of the global fetch.
  const limited = adapter === 'fetch' ? it.skip : it;
  limited('HT-28 200 concurrent calls use at most maxSockets connections', async () => {
    const { payments } = await harness.boot({ maxSockets: 4 });
    await Promise.all(Array.from({ length: 200 }, (_, n) => payments.getTransaction(String(n))));
    expect(harness.service.connections).toBeLessThanOrEqual(5);
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

  it('HT-30 onRequest gets method, path template, status, attempt and elapsed time, but no header or body', async () => {
    const { service } = harness;
    const facts: RequestFacts[] = [];
    const { payments, runtime } = await harness.boot({
      onRequest: (attempt) => facts.push(attempt),
    });
    service.queue.push(
      (request, response) => {
        runtime.advance(70);
        json(503, {})(request, response);
      },
      hangUp,
      json(200, { body: 'x' }),
    );
    const call = payments.getTransaction('tx-4711');
    for (const wait of [200, 400]) {
      await until(() => (runtime.nextIn ?? Infinity) < 1_000);
      runtime.advance(wait);
    }
    await call;
    await payments.post('/v1/things/4711', { pathTemplate: '/v1/things/{id}', body: { a: 1 } });

    const get = { company: 'default', method: 'GET', path: '/v1/transactions/{id}' };
    expect(facts).toEqual([
      {
        company: 'default',
        method: 'POST',
        path: '/v1/auth/token',
        status: 200,
        attempt: 1,
        failure: undefined,
        elapsedMs: 0,
      },
      { ...get, status: 503, failure: undefined, attempt: 1, elapsedMs: 70 },
      { ...get, status: undefined, failure: 'connection_failed', attempt: 2, elapsedMs: 0 },
      { ...get, status: 200, failure: undefined, attempt: 3, elapsedMs: 0 },
      {
        company: 'default',
        method: 'POST',
        path: '/v1/things/{id}',
        status: 200,
        attempt: 1,
        failure: undefined,
        elapsedMs: 0,
      },
    ]);
    expect(JSON.stringify(facts)).not.toMatch(/4711|token-1|Bearer/);
  });

  it('HT-30 an onRequest that throws or rejects does not affect the call, and is logged once', async () => {
    for (const onRequest of [
      (): void => {
        throw new Error('hook');
      },
      (): Promise<void> => Promise.reject(new Error('hook')),
    ]) {
      const { payments, logs } = await harness.boot({ onRequest });
      await payments.get('/v1/things');
      await payments.get('/v1/things');
      await new Promise((resolve) => setImmediate(resolve));
      expect(logs).toHaveLength(1);
    }
  });
});
