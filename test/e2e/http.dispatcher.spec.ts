import { describe, expect, it } from '@jest/globals';
import { MockAgent } from 'undici';
import { MOCKED, mockedServiceClients } from '../support/api.harness.js';

describe('MockAgent of undici', () => {
  const boot = mockedServiceClients();
  it('HT-31 intercepts as api.dispatcher', async () => {
    const dispatcher = new MockAgent();
    dispatcher.disableNetConnect();
    const pool = dispatcher.get(MOCKED.baseUrl);
    pool.intercept({ path: MOCKED.tokenPath, method: 'POST' }).reply(200, MOCKED.token);
    pool.intercept({ path: MOCKED.path, method: 'GET' }).reply(200, MOCKED.transaction);
    const payments = await boot({ dispatcher });
    expect(await payments.getTransaction('1')).toEqual(MOCKED.transaction);
    dispatcher.assertNoPendingInterceptors();
    await dispatcher.close();
  });
});
