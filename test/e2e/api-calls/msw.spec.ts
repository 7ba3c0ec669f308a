import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { http, HttpResponse } from 'msw';
import { setupServer } from 'msw/node';
import {
  BASE_URL,
  bootMocked,
  PATH,
  TOKEN,
  TRANSACTION,
} from '../../support/api/mocked-service.js';

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
      const payments = await bootMocked({ adapter });
      expect(await payments.getTransaction('1')).toEqual(TRANSACTION);
      expect(authorizations.splice(0)).toEqual(['Bearer mocked']);
      await expect(payments.get('/v1/missing')).rejects.toMatchObject({ code: 'not_found' });
      await expect(payments.post('/v1/things')).rejects.toMatchObject({ code: 'outcome_unknown' });
    },
  );
});
