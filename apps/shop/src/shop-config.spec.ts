import { describe, expect, it } from '@jest/globals';
import { readShopEnvironment, SettingsError } from './shop-config.js';

const REQUIRED = {
  PAYMENTS_BASE_URL: 'https://payments.example.com',
  PAYMENTS_CLIENT_ID: 'merchant',
  PAYMENTS_CLIENT_SECRET: 'client-secret',
  PAYMENTS_WEBHOOK_SECRET: 'webhook-secret',
};

function problemsOf(variables: Record<string, string | undefined>): readonly string[] {
  try {
    readShopEnvironment({ ...REQUIRED, ...variables });
    return [];
  } catch (error) {
    return (error as SettingsError).problems;
  }
}

describe('readShopEnvironment', () => {
  it('readShopEnvironment() uses a default for each variable of the shop that is not set', () => {
    expect(readShopEnvironment(REQUIRED)).toEqual({
      port: 3000,
      host: '127.0.0.1',
      adapter: 'express',
      dataFolder: 'shop-data',
      databaseUrl: undefined,
      leaseMs: 10_000,
      checkoutPath: '/emulator/checkout-invoices',
      paidStatus: 'complete',
      declinedStatus: 'failed',
      findPath: '/emulator/payments',
      pollScheduleMs: null,
      consolePassword: null,
    });
  });

  it('readShopEnvironment() treats an empty variable as not set', () => {
    const variables = { ...REQUIRED, PORT: '', SHOP_ADAPTER: ' ', PAYMENTS_CHECKOUT_PATH: '' };
    expect(readShopEnvironment(variables)).toEqual(readShopEnvironment(REQUIRED));
  });

  it('readShopEnvironment() reads all variables', () => {
    expect(
      readShopEnvironment({
        ...REQUIRED,
        PORT: '0',
        SHOP_HOST: '::',
        SHOP_ADAPTER: 'fastify',
        SHOP_DATA: '/var/lib/shop',
        DATABASE_URL: 'postgresql:///shop',
        SHOP_LEASE_MS: '1000',
        PAYMENTS_CHECKOUT_PATH: '/v1/invoices',
        PAYMENTS_PAID_STATUS: 'settled',
        PAYMENTS_DECLINED_STATUS: 'rejected',
        PAYMENTS_FIND_PATH: '/v1/search',
        SHOP_POLL_SCHEDULE_MS: '1000,2000',
        SHOP_CONSOLE_PASSWORD: 'twelve chars',
      }),
    ).toEqual({
      port: 0,
      host: '::',
      adapter: 'fastify',
      dataFolder: '/var/lib/shop',
      databaseUrl: 'postgresql:///shop',
      leaseMs: 1000,
      checkoutPath: '/v1/invoices',
      paidStatus: 'settled',
      declinedStatus: 'rejected',
      findPath: '/v1/search',
      pollScheduleMs: [1000, 2000],
      consolePassword: 'twelve chars',
    });
  });

  it.each([
    ['PORT', 'abc'],
    ['PORT', '65536'],
    ['SHOP_HOST', 'two words'],
    ['SHOP_ADAPTER', 'koa'],
    ['SHOP_DATA', 'two\0parts'],
    ['DATABASE_URL', 'shop:password@localhost/shop'],
    ['DATABASE_URL', 'mysql://localhost/shop'],
    ['SHOP_LEASE_MS', '999'],
    ['SHOP_LEASE_MS', '3600001'],
    ['PAYMENTS_CHECKOUT_PATH', 'invoices'],
    ['PAYMENTS_CHECKOUT_PATH', 'https://elsewhere.example/invoices'],
    ['PAYMENTS_CHECKOUT_PATH', '/v1/../invoices'],
    ['PAYMENTS_DECLINED_STATUS', 'complete'],
    ['PAYMENTS_FIND_PATH', 'payments'],
    ['SHOP_POLL_SCHEDULE_MS', '1s'],
    ['SHOP_POLL_SCHEDULE_MS', '99'],
    ['SHOP_POLL_SCHEDULE_MS', '2000,1000'],
    ['SHOP_CONSOLE_PASSWORD', 'eleven char'],
    ['SHOP_CONSOLE_PASSWORD', 'a'.repeat(201)],
    ['SHOP_CONSOLE_PASSWORD', 'twelve chars\n'],
  ])(
    'readShopEnvironment() rejects %s=%j with one message that names the variable',
    (name, value) => {
      expect(problemsOf({ [name]: value })).toEqual([
        expect.stringMatching(new RegExp(`^${name} must be `)),
      ]);
    },
  );

  it('readShopEnvironment() lists the problems of the payments module and of the shop together', () => {
    expect(problemsOf({ PAYMENTS_CLIENT_SECRET: undefined, PORT: 'abc' })).toEqual([
      expect.stringMatching(/^PAYMENTS_CLIENT_SECRET is not set/),
      expect.stringMatching(/^PORT must be /),
    ]);
  });

  it('readShopEnvironment() shows no value of a variable in its messages', () => {
    const error = new SettingsError(problemsOf({ PORT: 'whsec_typed_into_the_wrong_line' }));
    expect(JSON.stringify([error.message, error.problems])).not.toContain('whsec');
  });
});
