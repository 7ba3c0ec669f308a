import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { PaymentsEmulator } from 'payments-emulator';
import { eventually } from '../../support/time/waiting.js';
import { RunningShop, settingsFor } from '../../support/shop/running-shop.js';

const PREVIOUS = 'whsec-before-the-rotation';

describe.each(['express', 'fastify'])('payments of the shop on %s', (adapter) => {
  let emulator: PaymentsEmulator;
  let shop: RunningShop;

  beforeAll(async () => {
    emulator = await PaymentsEmulator.start({ seed: 'payments', redeliver: [] });
    shop = await RunningShop.start({
      ...settingsFor(emulator),
      SHOP_ADAPTER: adapter,
      PAYMENTS_WEBHOOK_SECRET_PREVIOUS: PREVIOUS,
    });
    emulator.setWebhook({ url: shop.webhookUrl });
  });
  afterEach(() => emulator.setFaults({}));
  afterAll(async () => {
    await shop?.[Symbol.asyncDispose]();
    await emulator?.close();
  });

  /** Pays by phone. Resolves with the responses to the deliveries of the event. */
  async function pay(externalReference: string, amount: number): Promise<(number | undefined)[]> {
    const { transactionId } = emulator.createStkPush({ amount, externalReference });
    emulator.complete(transactionId);
    await emulator.idle();
    return emulator.deliveries({ transactionId }).map(({ response }) => response?.status);
  }

  /** Pays by phone. Resolves when the payment is recorded. */
  async function payAndRecord(externalReference: string, amount: number): Promise<void> {
    await shop.handled(1, async () => {
      expect(await pay(externalReference, amount)).toEqual([200]);
    });
  }

  const amounts = async (reference: string) =>
    (await shop.ledger(reference)).map(({ amount }) => amount);

  it('the shop records each payment once if every delivery arrives twice and out of order', async () => {
    const references = ['d1', 'd2', 'd3', 'd4', 'd5'];
    for (const reference of references) await shop.createOrder(reference, 10);
    emulator.setFaults({ delivery: { duplicate: {}, reorder: { window: 10, maxWaitMs: 10_000 } } });
    const unpaid = emulator.transactions().filter(({ completedAt }) => completedAt === undefined);
    await shop.handled(references.length, async () => {
      for (const { transactionId } of unpaid) emulator.complete(transactionId);
      await emulator.idle();
    });
    for (const reference of references) {
      expect(await amounts(reference)).toEqual([10]);
      expect((await shop.order(reference)).status).toBe('paid');
    }
  });

  it('the shop records a payment once if two events report it, even at the same time', async () => {
    await shop.createOrder('two-events', 10);
    const { transactionId } = emulator.createStkPush({
      amount: 10,
      externalReference: 'two-events',
    });
    // Slow responses of the API, so that both handlers ask before one records the payment.
    emulator.setFaults({ api: { slow: { ms: 200 } } });
    const events = { eventType: 'transaction.completed', data: {} };
    await shop.handled(1, () => {
      events.data = emulator.complete(transactionId).event.data;
      emulator.sendEvent(events);
    });
    // The inbox detects the duplicate by its transaction, although its event id differs.
    emulator.sendEvent(events);
    // A payment may be recorded before the shop responds to its delivery.
    await emulator.idle();
    expect(emulator.deliveries({ transactionId }).map(({ response }) => response?.status)).toEqual([
      200, 200, 200,
    ]);
    expect(await amounts('two-events')).toEqual([10]);
  });

  it('the shop records a payment without an order as unmatched', async () => {
    await payAndRecord('nobody-ordered', 33);
    expect(await shop.ledger('nobody-ordered')).toMatchObject([{ amount: 33, unmatched: true }]);
    await shop.process.prints(/WARN.*Recorded 33 for "nobody-ordered" .*matches no order/);
  });

  it('the shop does not use an unmatched payment for an order that is created later', async () => {
    await payAndRecord('too-early', 10);
    expect(await shop.createOrder('too-early', 10)).toMatchObject({ status: 'pending' });
  });

  it('the shop records a partial payment, and returns the order as paid only if its amount is covered', async () => {
    await shop.createOrder('parts', 0.3);
    await payAndRecord('parts', 0.1);
    expect(await shop.order('parts')).toMatchObject({ status: 'pending', amountPaid: 0.1 });
    await shop.process.prints(
      /WARN.*Recorded 0.1 for "parts" .*the order is pending, with 0.1 of 0.3 paid/,
    );
    await payAndRecord('parts', 0.2);
    const order = await shop.order('parts');
    expect([order.status, order.amountPaid]).toEqual(['paid', undefined]);
    expect(await amounts('parts')).toEqual([0.1, 0.2]);
  });

  it('the shop records an overpayment, and returns it with the order', async () => {
    await shop.createOrder('generous', 10);
    await payAndRecord('generous', 10);
    await payAndRecord('generous', 10);
    expect(await amounts('generous')).toEqual([10, 10]);
    expect(await shop.order('generous')).toMatchObject({ status: 'paid', amountPaid: 20 });
    await shop.process.prints(/WARN.*the order is paid, with 20 of 10 paid/);
  });

  it('the shop records a payment only when its status at the API is complete', async () => {
    const { transactionId } = emulator.createStkPush({ amount: 10, externalReference: 'early' });
    await shop.createOrder('early', 10);
    emulator.sendEvent({
      eventType: 'transaction.completed',
      data: { ...emulator.transaction(transactionId), status: 'complete' },
    });
    await emulator.idle();
    expect(emulator.deliveries({ transactionId })[0]?.response?.status).toBe(200);
    await shop.process.prints(/its status at the payments service is "pending", not "complete"/);
    expect(await amounts('early')).toEqual([]);
    // The next attempt of the early event succeeds. The event of the payment is a duplicate of it.
    await shop.handled(1, () => emulator.complete(transactionId));
    expect(await amounts('early')).toEqual([10]);
  });

  it('the shop does not record a transaction that the API does not know', async () => {
    const data = { transactionId: 'made-up', amount: 10, externalReference: 'forged' };
    emulator.sendEvent({ eventType: 'transaction.completed', data });
    await emulator.idle();
    expect(emulator.deliveries({ transactionId: 'made-up' })[0]?.response?.status).toBe(200);
    await shop.process.prints(/record-payment.*404/);
    expect(await amounts('forged')).toEqual([]);
    // The failure is logged before the delivery is pending again.
    await eventually(async () => expect(await shop.deliveries()).toMatchObject({ pending: 1 }));
  });

  it('the shop rejects a tampered delivery, and records the payment when the unchanged delivery arrives', async () => {
    await shop.createOrder('tampered', 10);
    emulator.setFaults({ delivery: { tamperBody: { next: 1 } } });
    expect(await pay('tampered', 10)).toEqual([401]);
    expect(await amounts('tampered')).toEqual([]);
    const rejected = emulator.deliveries({ state: 'failed' }).at(-1)!;
    await shop.handled(1, () => emulator.redeliver(rejected.id));
    expect(await amounts('tampered')).toEqual([10]);
  });

  it('the shop accepts both secrets of a rotation, and no other', async () => {
    const { webhookSecret } = emulator.company;
    emulator.setWebhook({ secret: PREVIOUS });
    await payAndRecord('previous', 10);
    emulator.setWebhook({ secret: 'whsec-never-listed' });
    expect(await pay('third', 10)).toEqual([401]);
    emulator.setWebhook({ secret: webhookSecret });
    await payAndRecord('current', 10);
    expect(await amounts('third')).toEqual([]);
  });

  it('the shop requests a new token if the service rejects the current token', async () => {
    await shop.createOrder('token-before', 10);
    emulator.revokeTokens();
    expect((await shop.createOrder('token-after', 10)).checkoutUrl).not.toBeNull();
    emulator.revokeTokens();
    await payAndRecord('token-after', 10);
    expect(await amounts('token-after')).toEqual([10]);
  });

  it('the shop responds with 200 to a test webhook', async () => {
    emulator.sendEvent({ eventType: 'webhook.test' });
    await emulator.idle();
    expect(emulator.deliveries({ eventType: 'webhook.test' })[0]?.response?.status).toBe(200);
  });
});
