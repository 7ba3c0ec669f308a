import { describe, expect, it } from '@jest/globals';
import { parseEnvelope } from '../events/payment-event.js';
import type { PaymentEvent } from '../events/payment-event.js';
import { paymentEvent } from './payment-event-builder.js';

describe('paymentEvent()', () => {
  it('AP-11 builds a complete event that the module accepts', () => {
    const event: PaymentEvent<'transaction.completed'> = paymentEvent('transaction.completed');
    expect(parseEnvelope(Buffer.from(JSON.stringify(event)))).toEqual(event);
    expect(event.data).toEqual({
      transactionId: expect.any(String),
      status: 'complete',
      amount: 1500,
      accountReference: 'INV-1001',
      externalReference: 'order-77',
    });
    expect(Math.abs(Date.parse(event.timestamp) - Date.now())).toBeLessThan(60_000);
  });

  it('AP-11 gives each event ids of its own', () => {
    const [a, b] = [paymentEvent('transaction.completed'), paymentEvent('transaction.completed')];
    expect(a.id).not.toBe(b.id);
    expect(a.data.transactionId).not.toBe(b.data.transactionId);
  });

  it('AP-11 merges data over the defaults, and takes id, timestamp and metadata', () => {
    const envelope = { id: 'e-1', timestamp: '2026-01-02T03:04:05.000Z', metadata: { a: 1 } };
    const event = paymentEvent('transaction.completed', { amount: 350 }, envelope);
    expect(event).toMatchObject({ ...envelope, data: { amount: 350, status: 'complete' } });
  });

  it('AP-11 takes the data of any other type as given', () => {
    expect(paymentEvent('webhook.test').data).toEqual({});
    expect(paymentEvent('payout.failed', { payoutId: 'p-1' }).data).toEqual({ payoutId: 'p-1' });
    // @ts-expect-error an amount is a number
    expect(paymentEvent('transaction.completed', { amount: '350' }).data.amount).toBe('350');
  });
});
