import { describe, expect, it } from '@jest/globals';
import type { PaymentsApi } from 'nestjs-payments';
import type { ShopSettings } from '../shop-config.js';
import { reconcileOptions } from './reconcile-options.js';

describe('find() of reconcileOptions()', () => {
  const { find } = reconcileOptions({ findPath: '/payments' } as ShopSettings);
  const found = (transactions: unknown) => {
    const api = { get: async () => ({ transactions }) } as unknown as PaymentsApi;
    return find!('order-1', api, { signal: new AbortController().signal });
  };

  it('find() of the shop returns the id of the first transaction, or undefined if the list of transactions is empty', async () => {
    expect(await found([])).toBeUndefined();
    expect(await found([{ transactionId: 't-1' }])).toBe('t-1');
  });

  it.each([undefined, null, {}, '', [{}], [null]])(
    'find() of the shop rejects the response %j, which does not show whether a payment exists',
    async (transactions) => {
      await expect(found(transactions)).rejects.toThrow();
    },
  );
});
