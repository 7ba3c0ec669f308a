import { expect, it } from '@jest/globals';
import { paymentEvent } from 'nestjs-payments/testing';

declare module 'nestjs-payments' {
  interface PaymentEventMap {
    'kit.types.settled': { payoutId: string };
    'kit.types.noted': { note?: string };
  }
}

it('AP-11 paymentEvent() requires data if PaymentEventMap declares required fields for the type', () => {
  expect(paymentEvent('kit.types.settled', { payoutId: 'p-1' }).data.payoutId).toBe('p-1');
  expect(paymentEvent('kit.types.noted').data.note).toBeUndefined();
  // @ts-expect-error data is required
  expect(paymentEvent('kit.types.settled').data).toEqual({});
  // @ts-expect-error payoutId is required
  expect(paymentEvent('kit.types.settled', {}).data).toEqual({});
});
