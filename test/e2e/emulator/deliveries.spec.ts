import { describe, expect, it } from '@jest/globals';
import { ManualClock, PaymentsEmulator } from 'payments-emulator';
import { useEmulator } from '../../support/emulator/shared-emulator.js';
import { signatureOf } from '../../support/emulator/webhook-receiver.js';
import type { WebhookReceiver } from '../../support/emulator/webhook-receiver.js';
import { until } from '../../support/time/waiting.js';

const payment = { amount: 1500, accountReference: 'INV-1001', externalReference: 'order-77' };
const clock = new ManualClock(Date.parse('2026-11-20T10:00:00.000Z'));
let receiver: WebhookReceiver;
let emulator: PaymentsEmulator;

useEmulator((started) => ({ receiver, emulator } = started), { clock });

function pay(more: object = {}) {
  const { transactionId } = emulator.createCheckoutInvoice({ ...payment, ...more });
  return emulator.complete(transactionId);
}

describe('the event of a completed transaction', () => {
  it("the event of a completed transaction has exactly the fields of the service's envelope", async () => {
    const { transaction, event } = pay();
    await emulator.idle();
    expect(receiver.received).toHaveLength(1);
    expect(JSON.parse(String(receiver.received[0]?.body))).toEqual({
      id: expect.stringMatching(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/),
      eventType: 'transaction.completed',
      timestamp: new Date(clock.now()).toISOString(),
      data: { transactionId: transaction.transactionId, status: 'complete', ...payment },
      metadata: {},
    });
    expect(receiver.received[0]?.event.id).toBe(event.id);
  });

  it('the event of a completed transaction is sent with the four headers and a signature of the sent bytes', async () => {
    pay({ externalReference: 'Bestellung "77" – 中文' });
    await emulator.idle();
    const { method, path, headers, body } = receiver.first;
    expect([method, path]).toEqual(['POST', '/webhooks/payments']);
    expect(headers).toMatchObject({
      'content-type': 'application/json',
      'x-webhook-event': 'transaction.completed',
      'x-webhook-signature': signatureOf(body, emulator.company.webhookSecret),
      'user-agent': 'PaymentsEmulator-Webhook/1.0',
    });
    expect(headers).not.toHaveProperty('content-encoding');
  });

  it('the event of a completed transaction contains the metadata of the transaction', async () => {
    pay({ metadata: { branch: { id: 7 } } });
    await emulator.idle();
    expect(receiver.received[0]?.event).toMatchObject({ metadata: { branch: { id: 7 } } });
  });

  it('the event of a completed transaction is sent once: a second completion throws', async () => {
    const { transaction } = pay();
    expect(() => emulator.complete(transaction.transactionId)).toThrow('is already complete');
    await emulator.idle();
    expect(receiver.received).toHaveLength(1);
  });
});

describe('a delivery', () => {
  it('a delivery is not retried by default, because the service documents no schedule', async () => {
    receiver.respondWith(500);
    pay();
    await emulator.flush();
    expect(receiver.received).toHaveLength(1);
  });

  it('a delivery is retried with the same bytes, after the waits of the schedule, until it is acknowledged', async () => {
    await using retrying = await PaymentsEmulator.start({
      webhookUrl: receiver.url,
      redeliver: [1_000, 60_000, 3_600_000],
    });
    receiver.respondWith(500, 503, 200);
    retrying.complete(retrying.createPayout(payment).transactionId);
    await retrying.flush();
    expect(
      retrying.deliveries().map(({ cause, attempt, state }) => [cause, attempt, state]),
    ).toEqual([
      ['event', 1, 'failed'],
      ['retry', 2, 'failed'],
      ['retry', 3, 'delivered'],
    ]);
    expect(new Set(receiver.received.map(({ body }) => String(body))).size).toBe(1);
  });

  it('a delivery waits for its redelivery time before a retry', async () => {
    await using retrying = await PaymentsEmulator.start({
      webhookUrl: receiver.url,
      redeliver: [60_000],
      clock,
    });
    receiver.respondWith(500, 200);
    retrying.complete(retrying.createPayout(payment).transactionId);
    await until(() => retrying.deliveries().length === 2);
    clock.advance(59_999);
    expect(retrying.deliveries().map(({ state }) => state)).toEqual(['failed', 'waiting']);
    clock.advance(1);
    await retrying.idle();
    expect(retrying.deliveries().map(({ state }) => state)).toEqual(['failed', 'delivered']);
    expect(receiver.received).toHaveLength(2);
  });
});

it('the emulator delivers events of any type, including undocumented types', async () => {
  const event = emulator.sendEvent({ eventType: 'payout.something_new', data: { deep: [1] } });
  await emulator.idle();
  expect(receiver.received[0]?.headers['x-webhook-event']).toBe('payout.something_new');
  expect(JSON.parse(String(receiver.received[0]?.body))).toEqual(event);
});
