import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { http, HttpResponse } from 'msw';
import { setupServer } from 'msw/node';
import { MOCKED, mockedServiceClients } from '../support/api.harness.js';

describe('msw', () => {
  const boot = mockedServiceClients();
  const authorizations: (string | null)[] = [];
  const server = setupServer(
    http.post(`${MOCKED.baseUrl}${MOCKED.tokenPath}`, () => HttpResponse.json(MOCKED.token)),
    http.get(MOCKED.baseUrl + MOCKED.path, ({ request }) => {
      authorizations.push(request.headers.get('authorization'));
      return HttpResponse.json(MOCKED.transaction);
    }),
    http.get(`${MOCKED.baseUrl}/v1/missing`, () => HttpResponse.json({}, { status: 404 })),
    http.post(`${MOCKED.baseUrl}/v1/things`, () => HttpResponse.error()),
  );
  beforeAll(() => server.listen({ onUnhandledFrame: 'error' }));
  afterAll(() => server.close());

  it.each(['http', 'fetch'] as const)('HT-31 intercepts, adapter %s', async (adapter) => {
    const payments = await boot({ adapter });
    expect(await payments.getTransaction('1')).toEqual(MOCKED.transaction);
    expect(authorizations.splice(0)).toEqual(['Bearer mocked']);
    await expect(payments.get('/v1/missing')).rejects.toMatchObject({ code: 'not_found' });
    await expect(payments.post('/v1/things')).rejects.toMatchObject({ code: 'outcome_unknown' });
  });
});
