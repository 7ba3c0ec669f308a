import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import nock from 'nock';
import {
  BASE_URL,
  bootMocked,
  PATH,
  TOKEN,
  TRANSACTION,
} from '../../support/api/mocked-service.js';

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
      const payments = await bootMocked({ adapter });
      expect(await payments.getTransaction('1')).toEqual(TRANSACTION);
      expect(nock.isDone()).toBe(true);
    },
  );
});
