import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { PaymentsEmulator } from 'payments-emulator';
import { eventually } from '../support/eventually.js';
import { settingsFor, Shop } from '../support/shop.client.js';

jest.setTimeout(30_000);

const PREVIOUS = 'whsec-before-the-rotation';

describe.each(['express', 'fastify'])('the shop on %s books payments', (adapter) => {
  let emulator: PaymentsEmulator;
  let shop: Shop;

  beforeAll(async () => {
    emulator = await PaymentsEmulator.start({ seed: 'payments', redeliver: [] });
    shop = await Shop.start({
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

  /** Pays by phone, and answers how the deliveries of the event were answered. */
  async function pay(externalReference: string, amount: number): Promise<(number | undefined)[]> {
    const { transactionId } = emulator.createStkPush({ amount, externalReference });
    emulator.complete(transactionId);
    await emulator.idle();
    return emulator.deliveries({ transactionId }).map(({ answer }) => answer?.status);
  }

  /** Pays by phone, and resolves once the payment is booked. */
  async function payAndBook(externalReference: string, amount: number): Promise<void> {
    await shop.handled(1, async () => {
      expect(await pay(externalReference, amount)).toEqual([200]);
    });
  }

  const amounts = async (reference: string) =>
    (await shop.ledger(reference)).map(({ amount }) => amount);

  it('books each payment once when every delivery comes twice and out of order', async () => {
    const references = ['d1', 'd2', 'd3', 'd4', 'd5'];
    for (const reference of references) await shop.place(reference, 10);
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

  it('books a payment once if two events name it, even at the same moment', async () => {
    await shop.place('two-events', 10);
    const { transactionId } = emulator.createStkPush({
      amount: 10,
      externalReference: 'two-events',
    });
    // Slow answers of the API, so that both handlers ask before either books.
    emulator.setFaults({ api: { slow: { ms: 200 } } });
    const events = { eventType: 'transaction.completed', data: {} };
    await shop.handled(1, () => {
      events.data = emulator.complete(transactionId).event.data;
      emulator.sendEvent(events);
    });
    // Known by its transaction, although it has another id.
    emulator.sendEvent(events);
    // A payment may be booked before the answer to its delivery is there.
    await emulator.idle();
    expect(emulator.deliveries({ transactionId }).map(({ answer }) => answer?.status)).toEqual([
      200, 200, 200,
    ]);
    expect(await amounts('two-events')).toEqual([10]);
  });

  it('books what matches no order, and marks it', async () => {
    await payAndBook('nobody-ordered', 33);
    expect(await shop.ledger('nobody-ordered')).toMatchObject([{ amount: 33, unmatched: true }]);
    await shop.process.line(/WARN.*Booked 33 for "nobody-ordered" .*matches no order/);
  });

  it('does not take money booked as unmatched for an order placed later', async () => {
    await payAndBook('too-early', 10);
    expect(await shop.place('too-early', 10)).toMatchObject({ status: 'pending' });
  });

  it('books less than was asked for, but calls the order paid only once it is covered', async () => {
    await shop.place('parts', 0.3);
    await payAndBook('parts', 0.1);
    expect(await shop.order('parts')).toMatchObject({ status: 'pending', amountPaid: 0.1 });
    await shop.process.line(/WARN.*Booked 0.1 for "parts" .*the order is pending, with 0.1 of 0.3/);
    await payAndBook('parts', 0.2);
    const order = await shop.order('parts');
    expect([order.status, order.amountPaid]).toEqual(['paid', undefined]);
    expect(await amounts('parts')).toEqual([0.1, 0.2]);
  });

  it('books more than was asked for, and shows it', async () => {
    await shop.place('generous', 10);
    await payAndBook('generous', 10);
    await payAndBook('generous', 10);
    expect(await amounts('generous')).toEqual([10, 10]);
    expect(await shop.order('generous')).toMatchObject({ status: 'paid', amountPaid: 20 });
    await shop.process.line(/WARN.*the order is paid, with 20 of 10/);
  });

  it('books nothing the API does not call complete, and books it once it does', async () => {
    const { transactionId } = emulator.createStkPush({ amount: 10, externalReference: 'early' });
    await shop.place('early', 10);
    emulator.sendEvent({
      eventType: 'transaction.completed',
      data: { ...emulator.transaction(transactionId), status: 'complete' },
    });
    await emulator.idle();
    expect(emulator.deliveries({ transactionId })[0]?.answer?.status).toBe(200);
    await shop.process.line(/the service says its status is "pending", not "complete"/);
    expect(await amounts('early')).toEqual([]);
    // The event that came too early is done by its next attempt; the one of the payment is a repeat of it.
    await shop.handled(1, () => emulator.complete(transactionId));
    expect(await amounts('early')).toEqual([10]);
  });

  it('books nothing the API has never heard of', async () => {
    const data = { transactionId: 'made-up', amount: 10, externalReference: 'forged' };
    emulator.sendEvent({ eventType: 'transaction.completed', data });
    await emulator.idle();
    expect(emulator.deliveries({ transactionId: 'made-up' })[0]?.answer?.status).toBe(200);
    await shop.process.line(/bookkeeper.*404/);
    expect(await amounts('forged')).toEqual([]);
    // The failure is written to the log before the delivery is given back.
    await eventually(async () => expect(await shop.deliveries()).toMatchObject({ pending: 1 }));
  });

  it('refuses a delivery that was tampered with, and books it when it comes as it was sent', async () => {
    await shop.place('tampered', 10);
    emulator.setFaults({ delivery: { tamperBody: { next: 1 } } });
    expect(await pay('tampered', 10)).toEqual([401]);
    expect(await amounts('tampered')).toEqual([]);
    const refused = emulator.deliveries({ state: 'failed' }).at(-1)!;
    await shop.handled(1, () => emulator.redeliver(refused.id));
    expect(await amounts('tampered')).toEqual([10]);
  });

  it('takes both secrets of a rotation, and no third', async () => {
    const { webhookSecret } = emulator.company;
    emulator.setWebhook({ secret: PREVIOUS });
    await payAndBook('previous', 10);
    emulator.setWebhook({ secret: 'whsec-never-listed' });
    expect(await pay('third', 10)).toEqual([401]);
    emulator.setWebhook({ secret: webhookSecret });
    await payAndBook('current', 10);
    expect(await amounts('third')).toEqual([]);
  });

  it('goes on by itself when its token is refused', async () => {
    await shop.place('token-before', 10);
    emulator.revokeTokens();
    expect((await shop.place('token-after', 10)).checkoutUrl).not.toBeNull();
    emulator.revokeTokens();
    await payAndBook('token-after', 10);
    expect(await amounts('token-after')).toEqual([10]);
  });

  it('answers a test webhook', async () => {
    emulator.sendEvent({ eventType: 'webhook.test' });
    await emulator.idle();
    expect(emulator.deliveries({ eventType: 'webhook.test' })[0]?.answer?.status).toBe(200);
  });
});
