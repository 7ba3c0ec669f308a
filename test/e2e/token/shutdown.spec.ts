import { Agent } from 'node:http';
import { describe, expect, it } from '@jest/globals';
import { apiHarness, describeWithEachAdapter } from '../../support/api/api-harness.js';
import { RunningProcess } from '../../support/processes/running-process.ts';
import { until } from '../../support/time/waiting.js';
import { json, silence } from '../../support/api/scripted-service.js';

const HERE = new URL('..', import.meta.url).pathname;

/** The source of an application that runs in its own process and closes while its calls are under way. */
const script = (baseUrl: string, adapter: string): string => `
  import { once } from 'node:events';
  import { NestFactory } from '@nestjs/core';
  import { PaymentsApiService, PaymentsModule } from 'nestjs-payments';
  import { Module } from '@nestjs/common';

  class App {}
  Module({ imports: [PaymentsModule.forRoot({
    baseUrl: '${baseUrl}', clientId: 'a', clientSecret: 'b', webhookSecret: 'c',
    api: { adapter: '${adapter}', deadlineMs: 600_000, attemptTimeoutMs: 300_000 },
  })] })(App);
  const app = await NestFactory.create(App, { logger: false });
  await app.init();
  const payments = app.get(PaymentsApiService);
  const codes = [];
  await payments.getTransaction('first');
  const calls = ['retried', 'silent'].map((id) =>
    payments.getTransaction(id).catch((error) => codes.push(error.code)));
  await once(process.stdin, 'data');
  process.stdin.destroy();
  await app.close();
  await Promise.all(calls);
  await payments.getTransaction('late').catch((error) => codes.push(error.code));
  console.log(codes.join());
`;

describeWithEachAdapter('shutdown of the API client', (harness, adapter) => {
  it('TK-20 closing the application cancels all timers, and the process exits', async () => {
    const { service } = harness;
    const called = Promise.withResolvers<void>();
    service.onCall = (request, response) => {
      if (service.calls.length === 3) called.resolve();
      if (request.path.endsWith('retried')) {
        response.writeHead(503, { 'retry-after': '15' }).end();
      } else if (!request.path.endsWith('silent')) {
        response.end('{}');
      }
    };
    await using application = new RunningProcess(
      process.execPath,
      ['--input-type=module', '--eval', script(service.baseUrl, adapter)],
      { cwd: HERE, input: true },
    );
    await Promise.race([called.promise, application.ended]);
    application.write('close\n');
    const { code } = await application.ended;
    expect({ code, output: application.output.trim() }).toEqual({
      code: 0,
      output: 'aborted,aborted,aborted',
    });
  });

  it('TK-20 closing the application cancels the timers of a token request and of the call that waits for it', async () => {
    const { service } = harness;
    service.onToken = silence;
    const { payments, runtime, close } = await harness.boot();
    const call = expect(payments.getTransaction('1')).rejects.toMatchObject({ code: 'aborted' });
    await until(() => service.tokenRequests.length === 1);
    expect(runtime.pending).toBeGreaterThan(0);
    await close();
    await call;
    expect(runtime.pending).toBe(0);
    await expect(payments.getTransaction('1')).rejects.toMatchObject({ code: 'aborted' });
  });

  it('TK-20 closing the application aborts calls under way, and an aborted POST rejects with outcome_unknown', async () => {
    const { service } = harness;
    const { payments, runtime, close } = await harness.boot();
    service.onCall = (request, response) => {
      if (request.path.endsWith('retried')) json(503, {})(request, response);
    };
    const aborted = { code: 'aborted', message: expect.stringContaining('closing') };
    const results = [
      expect(payments.getTransaction('silent')).rejects.toMatchObject(aborted),
      expect(payments.post('/v1/things')).rejects.toMatchObject({ code: 'outcome_unknown' }),
    ];
    await until(() => service.calls.length === 2);
    results.push(expect(payments.getTransaction('retried')).rejects.toMatchObject(aborted));
    await until(() => (runtime.nextIn ?? Infinity) < 1_000, 'the wait between attempts');
    await close();
    await Promise.all(results);
    expect(runtime.pending).toBe(0);
    // The module cannot close idle connections of the global fetch.
    if (adapter === 'fetch') return;
    await until(() => service.sockets.size === 0, 'the end of the connections');
  });
});

describe('shutdown of the API client with api.agents', () => {
  const harness = apiHarness();

  it('TK-20 closing the application aborts a token request through api.agents and cancels its timer', async () => {
    const { service } = harness;
    service.onToken = silence;
    const agent = new Agent();
    const { payments, runtime, close } = await harness.boot({ agents: { http: agent } });
    const call = expect(payments.getTransaction('1')).rejects.toMatchObject({ code: 'aborted' });
    await until(() => service.tokenRequests.length === 1);
    await close();
    await call;
    expect(runtime.pending).toBe(0);
    await until(() => service.sockets.size === 0, 'the end of the token request');
    agent.destroy();
  });
});
