import { afterEach, describe, expect, it } from '@jest/globals';
import { MockAgent } from 'undici';
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

describe('the API client with a MockAgent of undici', () => {
  it('HT-31 a MockAgent as api.dispatcher intercepts token requests and calls', async () => {
    const dispatcher = new MockAgent();
    dispatcher.disableNetConnect();
    const pool = dispatcher.get(BASE_URL);
    pool.intercept({ path: '/v1/auth/token', method: 'POST' }).reply(200, TOKEN);
    pool.intercept({ path: PATH, method: 'GET' }).reply(200, TRANSACTION);
    const payments = await boot({ dispatcher });
    expect(await payments.getTransaction('1')).toEqual(TRANSACTION);
    dispatcher.assertNoPendingInterceptors();
    await dispatcher.close();
  });
});
