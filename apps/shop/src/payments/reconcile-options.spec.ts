import { describe, expect, it } from '@jest/globals';
import type { PaymentsApi } from 'nestjs-payments';
import type { ShopSettings } from '../shop-config.js';
import { reconcileOptions } from './reconcile-options.js';

describe('the shop looks up a transaction by the reference of the order', () => {
  const { find } = reconcileOptions({ findPath: '/payments' } as ShopSettings);
  const found = (transactions: unknown) => {
    const api = { get: async () => ({ transactions }) } as unknown as PaymentsApi;
    return find!('order-1', api, { signal: new AbortController().signal });
  };

  it('and finds it, or nothing', async () => {
    expect(await found([])).toBeUndefined();
    expect(await found([{ transactionId: 't-1' }])).toBe('t-1');
  });

  it.each([undefined, null, {}, '', [{}], [null]])(
    'and rejects the response %j, which does not show that no payment exists',
    async (transactions) => {
      await expect(found(transactions)).rejects.toThrow();
    },
  );
});
