import { describe, expect, it } from '@jest/globals';
import { ManualClock, PaymentsEmulator } from 'payments-emulator';
import { json, post } from '../../support/emulator/api-client.js';
import { WebhookReceiver } from '../../support/emulator/webhook-receiver.js';

const payment = { amount: 1500, externalReference: 'order-77' };
const DAY = 86_400_000;

async function startAt(start: string, options: { maxTransactions?: number } = {}) {
  const clock = new ManualClock(Date.parse(start));
  const receiver = await WebhookReceiver.start();
  const emulator = await PaymentsEmulator.start({ clock, webhookUrl: receiver.url, ...options });
  const { transactionId } = emulator.createStkPush(payment);
  return {
    clock,
    receiver,
    emulator,
    transactionId,
    async [Symbol.asyncDispose]() {
      await emulator.close();
      await receiver[Symbol.asyncDispose]();
    },
  };
}

describe('completeLater()', () => {
  it('completeLater() completes the transaction at the given time and sends its event', async () => {
    await using later = await startAt('2026-01-01T00:00:00Z');
    const { clock, emulator, receiver, transactionId } = later;
    expect(emulator.completeLater(transactionId, DAY)).toMatchObject({
      status: 'pending',
      completesAt: '2026-01-02T00:00:00.000Z',
    });
    clock.advance(DAY - 1);
    expect(emulator.transaction(transactionId).status).toBe('pending');
    await emulator.flush();
    clock.advance(1);
    expect(emulator.transaction(transactionId)).toMatchObject({
      status: 'complete',
      completedAt: '2026-01-02T00:00:00.000Z',
      completesAt: undefined,
    });
    await emulator.idle();
    expect(receiver.received.map(({ event }) => event.data['transactionId'])).toEqual([
      transactionId,
    ]);
  });

  it('a second completeLater() replaces the time of the first, and a decline or a completion cancels the planned completion', async () => {
    await using later = await startAt('2026-01-01T00:00:00Z');
    const { clock, emulator, transactionId } = later;
    emulator.completeLater(transactionId, 1_000);
    emulator.completeLater(transactionId, 2_000);
    clock.advance(1_000);
    expect(emulator.transaction(transactionId).status).toBe('pending');
    expect(emulator.fail(transactionId).completesAt).toBeUndefined();
    const { transactionId: paid } = emulator.createPayout(payment);
    emulator.completeLater(paid, 5_000);
    emulator.complete(paid);
    expect(clock.pending).toBe(0);
    clock.advance(DAY);
    expect(emulator.transaction(transactionId).status).toBe('failed');
    expect(() => emulator.completeLater(paid, 1)).toThrow('is already complete');
  });

  it('completeLater() ignores a transaction that the emulator removed in the meantime', async () => {
    await using later = await startAt('2026-01-01T00:00:00Z', { maxTransactions: 1 });
    const { clock, emulator, transactionId } = later;
    emulator.completeLater(transactionId, 1_000);
    emulator.createStkPush(payment);
    clock.advance(1_000);
    expect(emulator.transactions().map(({ status }) => status)).toEqual(['pending']);
    expect(emulator.deliveries()).toEqual([]);
  });

  it('completeLater() is cancelled by a reset and by a close', async () => {
    await using later = await startAt('2026-01-01T00:00:00Z');
    const { clock, emulator, transactionId } = later;
    emulator.completeLater(transactionId, 1_000);
    await emulator.reset();
    expect(clock.pending).toBe(0);
    emulator.completeLater(emulator.createStkPush(payment).transactionId, 1_000);
    await emulator.close();
    expect(clock.pending).toBe(0);
  });

  it('completeLater() is available as a control, which checks the delay', async () => {
    await using later = await startAt('2026-01-01T00:00:00Z');
    const { clock, emulator, transactionId } = later;
    const url = `${emulator.baseUrl}/emulator/transactions/${transactionId}/complete-later`;
    for (const delayMs of [0, 1.5, 604_800_001, '1000', undefined]) {
      const response = await post(url, { delayMs });
      expect([delayMs, response.status]).toEqual([delayMs, 400]);
      expect((await json(response))['message']).toContain(
        'delayMs must be a whole number of milliseconds from 1 to 604800000',
      );
    }
    const response = await post(url, { delayMs: 604_800_000 });
    expect([response.status, (await json(response))['completesAt']]).toEqual([
      200,
      '2026-01-08T00:00:00.000Z',
    ]);
    clock.advance(604_800_000);
    expect(emulator.transactions({ open: false, externalReference: 'order-77' })).toHaveLength(1);
    expect(emulator.transactions({ externalReference: 'order-7' })).toEqual([]);
  });
});
