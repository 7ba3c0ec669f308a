import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { http, HttpResponse } from 'msw';
import { setupServer } from 'msw/node';
import {
  apiApplication,
  testCompany,
  type ApiApplication,
} from '../../support/api/api-application.js';

const BASE_URL = 'https://payments.example.com';
const TOKEN = { access_token: 'mocked', expires_in: '3599', token_type: 'Bearer' };
const PATH = '/v1/transactions/1';
const TRANSACTION = { status: 'complete' };

let application: ApiApplication;

async function boot(options: Parameters<typeof apiApplication>[1]) {
  application = await apiApplication(testCompany(BASE_URL), options);
  return application.payments;
}

afterEach(() => application.close());

describe('the API client with msw', () => {
  const authorizations: (string | null)[] = [];
  const server = setupServer(
    http.post(`${BASE_URL}/v1/auth/token`, () => HttpResponse.json(TOKEN)),
    http.get(BASE_URL + PATH, ({ request }) => {
      authorizations.push(request.headers.get('authorization'));
      return HttpResponse.json(TRANSACTION);
    }),
    http.get(`${BASE_URL}/v1/missing`, () => HttpResponse.json({}, { status: 404 })),
    http.post(`${BASE_URL}/v1/things`, () => HttpResponse.error()),
  );
  beforeAll(() => server.listen({ onUnhandledFrame: 'error' }));
  afterAll(() => server.close());

  it.each(['http', 'fetch'] as const)(
    'HT-31 msw intercepts token requests and calls of the adapter %s',
    async (adapter) => {
      const payments = await boot({ adapter });
      expect(await payments.getTransaction('1')).toEqual(TRANSACTION);
      expect(authorizations.splice(0)).toEqual(['Bearer mocked']);
      await expect(payments.get('/v1/missing')).rejects.toMatchObject({ code: 'not_found' });
      await expect(payments.post('/v1/things')).rejects.toMatchObject({ code: 'outcome_unknown' });
    },
  );
});
