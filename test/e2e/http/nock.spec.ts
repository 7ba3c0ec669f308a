import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import nock from 'nock';
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

describe('the API client with nock', () => {
  beforeAll(() => {
    nock.disableNetConnect();
  });
  afterAll(() => {
    nock.enableNetConnect();
    nock.restore();
  });

  it.each(['http', 'fetch'] as const)(
    'HT-31 nock intercepts token requests and calls of the adapter %s',
    async (adapter) => {
      nock(BASE_URL)
        .post('/v1/auth/token')
        .basicAuth({ user: 'the-client-id', pass: 'the-client-secret' })
        .reply(200, TOKEN);
      nock(BASE_URL)
        .get(PATH)
        .matchHeader('authorization', 'Bearer mocked')
        .reply(200, TRANSACTION);
      const payments = await boot({ adapter });
      expect(await payments.getTransaction('1')).toEqual(TRANSACTION);
      expect(nock.isDone()).toBe(true);
    },
  );
});
