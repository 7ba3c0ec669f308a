import { describe, expect, it } from '@jest/globals';
import { PaymentsApiError } from '../api/api-error.js';
import type { PaymentsApiService } from '../api/payments-api.service.js';
import { apiError, FakePaymentsApi } from './fake-payments-api.js';

const PATH = '/v1/transactions/t-1';

describe('FakePaymentsApi', () => {
  it('AP-13 FakePaymentsApi returns the responses that the test sets, and records the calls', async () => {
    const payments = new FakePaymentsApi();
    payments.respond('GET', PATH, { amount: 350 });
    payments.respond('POST', '/v1/payouts', ({ body }) => ({ accepted: body }));
    expect(await payments.getTransaction('t-1')).toEqual({ amount: 350 });
    expect(await payments.forCompany('acme').post('/v1/payouts', { body: { to: 1 } })).toEqual({
      accepted: { to: 1 },
    });
    expect(await payments.request('GET', PATH, { query: { a: 1 } })).toMatchObject({ status: 200 });
    expect(payments.calls).toEqual([
      { company: 'default', method: 'GET', path: PATH },
      { company: 'acme', method: 'POST', path: '/v1/payouts', body: { to: 1 } },
      { company: 'default', method: 'GET', path: PATH, query: { a: 1 } },
    ]);
  });

  it('AP-13 FakePaymentsApi returns several responses one after the other, and repeats the last response', async () => {
    const payments = new FakePaymentsApi().respond('GET', PATH, apiError(503), 'a', 'b');
    await expect(payments.get(PATH)).rejects.toMatchObject({ code: 'server_error', status: 503 });
    expect([await payments.get(PATH), await payments.get(PATH), await payments.get(PATH)]).toEqual([
      'a',
      'b',
      'b',
    ]);
  });

  it('AP-13 FakePaymentsApi prefers an exact path to a template, and a later respond() to an earlier respond()', async () => {
    const payments = new FakePaymentsApi()
      .respond('GET', PATH, 'exact')
      .respond('GET', '/v1/transactions/{id}', 'first')
      .respond('GET', '/v1/transactions/{id}', ({ path }: { path: string }) => path);
    expect(await payments.getTransaction('t-1')).toBe('exact');
    payments.respond('POST', PATH, 'posted').respond('GET', '/v1/transactions/{any}', 'latest');
    expect([await payments.get(PATH), await payments.post(PATH)]).toEqual(['exact', 'posted']);
    expect(await payments.getTransaction('t-3')).toBe('latest');
    payments.respond('GET', '/v1/transactions/{id}', ({ path }: { path: string }) => path);
    expect(await payments.getTransaction('t.2')).toBe('/v1/transactions/t.2');
    await expect(payments.get('/v1/transactions/a/b')).rejects.toThrow('no response for GET');
  });

  it('AP-13 FakePaymentsApi throws and rejects for invalid paths and companies as PaymentsApiService does', async () => {
    const payments = new FakePaymentsApi();
    await expect(payments.get('v1')).rejects.toBeInstanceOf(TypeError);
    await expect(payments.getTransaction('..')).rejects.toBeInstanceOf(TypeError);
    expect(() => payments.forCompany('')).toThrow(TypeError);
    expect(apiError(404)).toMatchObject({ code: 'not_found', company: 'default', attempts: 1 });
    expect(apiError('timeout', { company: 'acme' })).toMatchObject({
      code: 'timeout',
      company: 'acme',
    });
    expect(apiError(429)).toBeInstanceOf(PaymentsApiError);
  });

  it('AP-13 FakePaymentsApi can be passed where PaymentsApiService is expected', () => {
    const service: PaymentsApiService = new FakePaymentsApi();
    expect(service.company).toBe('default');
  });
});
