import http from 'node:http';
import type { LookupFunction } from 'node:net';
import { describe, expect, it } from '@jest/globals';
import { testCompany } from '../../support/api/api-client-application.js';
import { apiHarness, describeWithEachAdapter } from '../../support/api/api-harness.js';
import { until } from '../../support/time/waiting.js';
import {
  hangUp,
  json,
  ScriptedService,
  silence,
  type Script,
} from '../../support/api/scripted-service.js';

const ADVICE = /GET \/v1\/transactions\/\{id\}/;

describeWithEachAdapter('calls that fail with an unknown outcome', (harness) => {
  const interrupt: Script = (_, response) => {
    response.writeHead(201, { 'content-length': '100' });
    response.write('{"id":', () => response.socket?.destroy());
  };

  it.each([
    ['post', 'a connection that closes without a response', hangUp],
    ['put', 'a connection that closes without a response', hangUp],
    ['patch', 'a connection that closes without a response', hangUp],
    ['delete', 'a connection that closes without a response', hangUp],
    ['post', 'a response that is interrupted', interrupt],
  ] as const)(
    'HT-24 a %s is not repeated after %s, and its error advises to read the transaction',
    async (verb, _, script) => {
      harness.service.onCall = script;
      const { payments } = await harness.boot();
      const call = payments[verb]('/v1/things', { body: { amount: 1 } });
      await expect(call).rejects.toMatchObject({
        code: 'outcome_unknown',
        reason: 'connection_failed',
        attempts: 1,
      });
      await expect(call).rejects.toThrow(ADVICE);
      expect(harness.service.calls).toHaveLength(1);
    },
  );

  it('HT-24 on a kept-alive connection that closes, a POST rejects with outcome_unknown and a GET is retried', async () => {
    const { service } = harness;
    const { payments, runtime } = await harness.boot();
    await payments.post('/v1/things');
    expect(service.connections).toBe(2);
    service.queue.push(hangUp);
    await expect(payments.post('/v1/things')).rejects.toMatchObject({ code: 'outcome_unknown' });
    await payments.get('/v1/things');
    service.queue.push(hangUp);
    const get = payments.get('/v1/things');
    await until(() => (runtime.nextIn ?? Infinity) < 1_000);
    runtime.advance(200);
    await expect(get).resolves.toBeDefined();
  });

  it.each([
    ['attemptTimeoutMs', { attemptTimeoutMs: 1_000 }],
    ['deadlineMs', { deadlineMs: 1_000 }],
  ])('HT-24 a POST that takes longer than %s rejects with outcome_unknown', async (_, options) => {
    harness.service.onCall = silence;
    const { payments, runtime } = await harness.boot(options);
    const call = payments.post('/v1/things');
    const ended = expect(call).rejects.toMatchObject({
      code: 'outcome_unknown',
      reason: 'timeout',
    });
    await until(() => harness.service.calls.length === 1);
    runtime.advance(1_000);
    await ended;
    expect(harness.service.calls).toHaveLength(1);
  });

  it.each([
    [429, 'rate_limited'],
    [500, 'server_error'],
    [503, 'server_error'],
  ])('HT-24 a POST with the response %i rejects and is not repeated', async (status, code) => {
    harness.service.onCall = json(status, {}, { 'retry-after': '1' });
    const { payments } = await harness.boot();
    const call = payments.post('/v1/things');
    await expect(call).rejects.toMatchObject({ code, status, retryAfterMs: 1_000, attempts: 1 });
    if (status >= 500) await expect(call).rejects.toThrow(ADVICE);
    expect(harness.service.calls).toHaveLength(1);
  });

  it('HT-24 a POST is retried if the connection was refused, and succeeds if the service is up again', async () => {
    const { service } = harness;
    const { payments, runtime } = await harness.boot();
    // The client has a token, and no connection is kept alive.
    const close = { connection: 'close' };
    service.onToken = json(200, service.tokenAnswer({ token: 'one' }), close);
    service.queue.push(json(200, {}, close));
    await payments.get('/v1/warm');
    const { port } = service;
    await service.stop();
    const call = payments.post('/v1/things', { body: {} });
    await until(() => (runtime.nextIn ?? Infinity) < 1_000, 'the wait between attempts');
    const again = await ScriptedService.start(port);
    runtime.advance(200);
    await expect(call).resolves.toEqual({ status: 'complete' });
    expect(again.calls).toHaveLength(1);
    await again.stop();
  });
});

describe('calls that fail, with api.agents', () => {
  const harness = apiHarness();

  it('HT-24 a POST is retried if no connection opened, and then rejects with connection_failed or timeout', async () => {
    const { service } = harness;
    let mode: 'works' | 'fails' | 'hangs' = 'works';
    const lookup: LookupFunction = (name, options, callback) => {
      const error = Object.assign(new Error(name), { code: 'EAI_AGAIN', syscall: 'getaddrinfo' });
      if (mode === 'works') callback(null, [{ address: '127.0.0.1', family: 4 }]);
      else if (mode === 'fails') callback(error, '');
      void options;
    };
    const agents = { http: new http.Agent({ lookup }) };
    const company = testCompany(`http://service.test:${service.port}`);
    const retry = { attempts: 2 };
    const { payments, runtime } = await harness.boot({ agents, retry }, company);
    await payments.get('/v1/warm');

    mode = 'fails';
    const refused = expect(payments.post('/v1/things')).rejects.toMatchObject({
      code: 'connection_failed',
      attempts: 2,
    });
    await until(() => (runtime.nextIn ?? Infinity) < 1_000);
    runtime.advance(200);
    await refused;

    mode = 'hangs';
    const call = payments.post('/v1/things', { deadlineMs: 60_000 });
    const late = expect(call).rejects.toMatchObject({ code: 'timeout', attempts: 2 });
    await until(() => runtime.nextIn === 10_000);
    await new Promise((resolve) => setImmediate(resolve));
    runtime.advance(10_000);
    await until(() => (runtime.nextIn ?? Infinity) < 1_000);
    runtime.advance(200);
    await until(() => runtime.nextIn === 10_000);
    await new Promise((resolve) => setImmediate(resolve));
    runtime.advance(10_000);
    await late;
    expect(service.calls).toHaveLength(1);
  });

  it('HT-24 a POST is sent once and rejects with outcome_unknown if its kept-alive connection of api.agents closes', async () => {
    const { service } = harness;
    const agent = new http.Agent({ keepAlive: true });
    const { payments } = await harness.boot({ agents: { http: agent } });
    await payments.get('/v1/warm');
    service.queue.push(hangUp);
    await expect(payments.post('/v1/things')).rejects.toMatchObject({
      code: 'outcome_unknown',
      attempts: 1,
    });
    expect(service.calls).toHaveLength(2);
    expect(service.connections).toBe(1);
    agent.destroy();
  });
});
