import { describe, expect, it } from '@jest/globals';
import { MockAgent } from 'undici';
import {
  BASE_URL,
  bootMocked,
  PATH,
  TOKEN,
  TRANSACTION,
} from '../../support/api/mocked-service.js';

describe('the API client with a MockAgent of undici', () => {
  it('HT-31 a MockAgent as api.dispatcher intercepts token requests and calls', async () => {
    const dispatcher = new MockAgent();
    dispatcher.disableNetConnect();
    const pool = dispatcher.get(BASE_URL);
    pool.intercept({ path: '/v1/auth/token', method: 'POST' }).reply(200, TOKEN);
    pool.intercept({ path: PATH, method: 'GET' }).reply(200, TRANSACTION);
    const payments = await bootMocked({ dispatcher });
    expect(await payments.getTransaction('1')).toEqual(TRANSACTION);
    dispatcher.assertNoPendingInterceptors();
    await dispatcher.close();
  });
});
