import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import nock from 'nock';
import { MOCKED, mockedServiceClients } from '../support/api.harness.js';

describe('nock', () => {
  const boot = mockedServiceClients();
  beforeAll(() => {
    nock.disableNetConnect();
  });
  afterAll(() => {
    nock.enableNetConnect();
    nock.restore();
  });

  it.each(['http', 'fetch'] as const)('HT-31 intercepts, adapter %s', async (adapter) => {
    nock(MOCKED.baseUrl)
      .post(MOCKED.tokenPath)
      .basicAuth({ user: 'the-client-id', pass: 'the-client-secret' })
      .reply(200, MOCKED.token);
    nock(MOCKED.baseUrl)
      .get(MOCKED.path)
      .matchHeader('authorization', 'Bearer mocked')
      .reply(200, MOCKED.transaction);
    const payments = await boot({ adapter });
    expect(await payments.getTransaction('1')).toEqual(MOCKED.transaction);
    expect(nock.isDone()).toBe(true);
  });
});
