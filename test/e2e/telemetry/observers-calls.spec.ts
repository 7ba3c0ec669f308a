import { describe, expect, it } from '@jest/globals';
import { PaymentsApiService } from 'nestjs-payments';
import type { PaymentsInstrumentation } from '../../../libs/payments/src/telemetry/observers.js';
import { json, ScriptedService } from '../../support/api/scripted-service.js';
import { WebhookApplication } from '../../support/webhook/webhook-application.js';
import { Observed } from '../../support/telemetry/recording-observer.js';

const start = async (...more: PaymentsInstrumentation[]) => {
  const service = await ScriptedService.start();
  const observed = new Observed();
  const payments = {
    baseUrl: service.baseUrl,
    observers: [observed.observer, ...more],
    api: { retry: { attempts: 2, baseDelayMs: 1 } },
  };
  const app = await WebhookApplication.start({ payments });
  const api = app.app.get(PaymentsApiService);
  const end = async (): Promise<void> => {
    await app[Symbol.asyncDispose]();
    await service.stop();
  };
  return { service, observed, api, [Symbol.asyncDispose]: end };
};
const DURATION = { durationMs: expect.any(Number) };

describe('calls of the service', () => {
  it('TE-01 an observer gets the token request and a successful call, with the path template of the call', async () => {
    await using run = await start();
    await run.api.getTransaction('t-1');
    expect(run.observed.calls).toEqual([
      { method: 'tokenFetched', info: { company: 'default', errorCode: null, ...DURATION } },
      {
        method: 'apiCallEnded',
        info: {
          company: 'default',
          method: 'GET',
          path: '/v1/transactions/{id}',
          status: 200,
          errorCode: null,
          attempts: 1,
          ...DURATION,
        },
      },
    ]);
  });

  it('TE-01 an observer gets a failed call once, with the last status and the number of requests', async () => {
    await using run = await start();
    run.service.onCall = json(503, {});
    await expect(run.api.getTransaction('t-1')).rejects.toMatchObject({ code: 'server_error' });
    expect(run.observed.of('apiCallEnded')).toMatchObject([
      { status: 503, errorCode: 'server_error', attempts: 2 },
    ]);
  });

  it('TE-01 an observer gets a rejected token request, and the call that fails because of the rejection', async () => {
    await using run = await start();
    run.service.onToken = json(401, {});
    await expect(run.api.getTransaction('t-1')).rejects.toMatchObject({
      code: 'invalid_credentials',
    });
    expect(run.observed.of('tokenFetched')).toMatchObject([{ errorCode: 'invalid_credentials' }]);
    expect(run.observed.of('apiCallEnded')).toMatchObject([
      { status: null, errorCode: 'invalid_credentials', attempts: 0 },
    ]);
  });

  it('HT-30 the path that an observer gets has no segment with digits and no query, even without a path template', async () => {
    await using run = await start();
    await run.api.get('/v1/customers/254700000001/limits', { query: { pin: '1234' } });
    await run.api.get('/v2/customers/254700000001', { pathTemplate: '/v2/customers/{phone}' });
    expect(run.observed.of('apiCallEnded').map(({ path }) => path)).toEqual([
      '/v1/customers/{id}/limits',
      '/v2/customers/{phone}',
    ]);
    expect(JSON.stringify(run.observed.calls)).not.toMatch(/254700000001|pin=|token-1/);
  });

  it('TE-01 the error of a call shows no path segment with digits to the application, to observers or in spans', async () => {
    const ends: unknown[] = [];
    const end = (result: unknown) => ends.push(result);
    const tracing: PaymentsInstrumentation = {
      startSpan: (operation) => {
        ends.push(operation);
        return { traceparent: null, run: (work) => work(), end };
      },
    };
    await using run = await start(tracing);
    run.service.onCall = json(404, {});
    const error: unknown = await run.api.get('/v1/customers/254700000001').catch((e: unknown) => e);
    expect(error).toMatchObject({ code: 'not_found', path: '/v1/customers/{id}' });
    expect(String(error)).toContain('GET /v1/customers/{id}');
    expect(ends).toMatchObject([
      { kind: 'call', path: '/v1/customers/{id}' },
      { outcome: 'failed', error: expect.stringContaining('GET /v1/customers/{id}') },
    ]);
    expect(`${String(error)}${JSON.stringify([ends, run.observed.calls])}`).not.toContain(
      '254700000001',
    );
  });
});
