import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { PaymentsEmulator } from 'payments-emulator';
import { RunningShop, settingsFor } from '../../support/shop/running-shop.js';
import type { Order } from '../../support/shop/running-shop.js';
import { eventually } from '../../support/time/waiting.js';

interface ErrorBody {
  statusCode: number;
  message: string | string[];
}

describe.each(['express', 'fastify'])('orders and payments of the shop on %s', (adapter) => {
  let emulator: PaymentsEmulator;
  let shop: RunningShop;

  beforeAll(async () => {
    emulator = await PaymentsEmulator.start({ seed: 'orders' });
    shop = await RunningShop.start({
      ...settingsFor(emulator),
      SHOP_ADAPTER: adapter,
    });
    emulator.setWebhook({ url: shop.webhookUrl });
  });
  afterEach(() => emulator.setFaults({}));
  afterAll(async () => {
    await shop?.[Symbol.asyncDispose]();
    await emulator?.close();
  });

  const invoicesOf = (reference: string) =>
    emulator.transactions().filter(({ externalReference }) => externalReference === reference);

  async function payInvoice(reference: string): Promise<void> {
    await shop.handled(1, () => {
      emulator.complete(invoicesOf(reference).at(-1)!.transactionId);
    });
  }

  it('the shop returns a new order with the address of its checkout page', async () => {
    const { status, body } = await shop.post({ reference: 'new.Order_1~-', amount: 12.5 });
    expect(status).toBe(201);
    expect(body).toEqual({
      reference: 'new.Order_1~-',
      amount: 12.5,
      status: 'pending',
      checkoutUrl: invoicesOf('new.Order_1~-')[0]!.checkoutUrl,
    });
    expect(invoicesOf('new.Order_1~-')).toMatchObject([{ amount: 12.5, kind: 'checkout-invoice' }]);
    expect((await fetch(body.checkoutUrl!)).status).toBe(200);
  });

  it('the shop returns an order as pending until it is paid, then as paid', async () => {
    const placed = await shop.createOrder('shown', 100);
    expect(await shop.get('/api/orders/shown')).toEqual({ status: 200, body: placed });
    await payInvoice('shown');
    expect(await shop.order('shown')).toEqual({ ...placed, status: 'paid' });
    expect(await shop.ledger('shown')).toEqual([
      {
        transactionId: invoicesOf('shown')[0]!.transactionId,
        reference: 'shown',
        amount: 100,
        recordedAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      },
    ]);
  });

  it('the shop responds with 404 for an order that does not exist', async () => {
    const { status, body } = await shop.get<ErrorBody>('/api/orders/nobody');
    expect([status, body.message]).toEqual([404, 'order nobody does not exist']);
  });

  it('the shop returns the same order with one invoice if a pending or paid order is created again', async () => {
    const first = await shop.post({ reference: 'again', amount: 7 });
    expect(await shop.post({ reference: 'again', amount: 7 })).toEqual(first);
    await payInvoice('again');
    const paid = await shop.post({ reference: 'again', amount: 7 });
    expect(paid).toEqual({ status: 201, body: { ...first.body, status: 'paid' } });
    expect(invoicesOf('again')).toHaveLength(1);
  });

  it('the shop creates one invoice for an order that is created twice at the same time', async () => {
    emulator.setFaults({ api: { slow: { ms: 200 } } });
    const [one, other] = await Promise.all([
      shop.createOrder('twice', 7),
      shop.createOrder('twice', 7),
    ]);
    expect(one).toEqual(other);
    expect(one.checkoutUrl).not.toBeNull();
    expect(invoicesOf('twice')).toHaveLength(1);
  });

  it('the shop rejects another amount with the reference of an existing order', async () => {
    await shop.createOrder('taken', 7);
    const { status, body } = await shop.post<ErrorBody>({ reference: 'taken', amount: 8 });
    expect(status).toBe(409);
    expect(body.message).toBe(
      'order taken exists with the amount 7; use another reference for another amount',
    );
    expect((await shop.order('taken')).amount).toBe(7);
    expect(invoicesOf('taken')).toHaveLength(1);
  });

  it.each([
    [{}, 'reference'],
    [{ amount: 5 }, 'reference'],
    [{ reference: '', amount: 5 }, 'reference'],
    [{ reference: 'a'.repeat(65), amount: 5 }, 'reference'],
    [{ reference: 'a/b', amount: 5 }, 'reference'],
    [{ reference: 'a b', amount: 5 }, 'reference'],
    [{ reference: 'a\n', amount: 5 }, 'reference'],
    [{ reference: '..', amount: 5 }, 'reference'],
    [{ reference: 7, amount: 5 }, 'reference'],
    [{ reference: ['a'], amount: 5 }, 'reference'],
    [{ reference: 'a' }, 'amount'],
    [{ reference: 'a', amount: '5' }, 'amount'],
    [{ reference: 'a', amount: 0 }, 'amount'],
    [{ reference: 'a', amount: -5 }, 'amount'],
    [{ reference: 'a', amount: 0.001 }, 'amount'],
    [{ reference: 'a', amount: 1e-7 }, 'amount'],
    [{ reference: 'a', amount: 1e13 }, 'amount'],
    [{ reference: 'a', amount: null }, 'amount'],
    ['{"reference":"a","amount":1e400}', 'amount'],
    [{ reference: 'a', amount: 5, status: 'paid' }, 'status'],
    [[{ reference: 'a', amount: 5 }], 'reference'],
  ])('the shop rejects %j with a message that names the field %s', async (order, field) => {
    const { status, body } = await shop.post<ErrorBody>(order);
    expect(status).toBe(400);
    expect([body.message].flat().join('\n')).toContain(field);
  });

  it('the shop rejects a body that is not JSON', async () => {
    expect((await shop.post('{"reference":')).status).toBe(400);
  });

  it('the shop accepts the longest reference, and amounts without an exact binary representation', async () => {
    const reference = 'r'.repeat(64);
    for (const [at, amount] of [0.01, 0.29, 1.15, 1_000_000_000_000].entries()) {
      const name = `${at}${reference.slice(1)}`;
      expect(await shop.createOrder(name, amount)).toMatchObject({ amount, status: 'pending' });
    }
  });

  it('if the invoice of an order cannot be created, the shop logs the reason, and creates the invoice when the order is created again', async () => {
    // Two calls must fail, because the module repeats a call once with a new token.
    emulator.setFaults({ api: { unauthorized: { next: 2 } } });
    const first = await shop.post({ reference: 'unlucky', amount: 9 });
    const order: Order = {
      reference: 'unlucky',
      amount: 9,
      status: 'pending',
      checkoutUrl: null,
    };
    expect(first).toEqual({ status: 201, body: order });
    expect(await shop.order('unlucky')).toEqual(order);
    await shop.process.prints(/WARN.*Order unlucky has no checkout page yet.*401/);
    expect((await shop.createOrder('unlucky', 9)).checkoutUrl).toMatch(/^http/);
  });

  it('the shop creates no second invoice after a request with an unknown outcome, even if the order is created again', async () => {
    emulator.setFaults({ api: { reset: { next: 1, when: 'after' } } });
    const order = await shop.createOrder('unknown', 9);
    expect(order).toMatchObject({ status: 'pending', checkoutUrl: null });
    await shop.process.prints(/Order unknown has no checkout page.*unknown whether/);
    expect(await shop.createOrder('unknown', 9)).toEqual(order);
    expect(invoicesOf('unknown')).toHaveLength(1);
    await payInvoice('unknown');
    expect((await shop.order('unknown')).status).toBe('paid');
  });

  /** Pays by phone. Resolves with the status codes of the responses to the webhook requests. */
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

  it('the shop records each payment once if every webhook request arrives twice and out of order', async () => {
    const references = ['d1', 'd2', 'd3', 'd4', 'd5'];
    for (const reference of references) await shop.createOrder(reference, 10);
    emulator.setFaults({ delivery: { duplicate: {}, reorder: { window: 10, maxWaitMs: 10_000 } } });
    await shop.handled(references.length, async () => {
      for (const reference of references) {
        for (const { transactionId } of invoicesOf(reference)) emulator.complete(transactionId);
      }
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
    // The API responds slowly, so that both handlers call the API before one of them records the payment.
    emulator.setFaults({ api: { slow: { ms: 200 } } });
    const events = { eventType: 'transaction.completed', data: {} };
    await shop.handled(1, () => {
      events.data = emulator.complete(transactionId).event.data;
      emulator.sendEvent(events);
    });
    // The inbox detects the duplicate by its transaction, although its event id differs.
    emulator.sendEvent(events);
    // A payment may be recorded before the shop responds to the webhook request.
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
    // The next attempt for the early event succeeds. The event of the payment is a duplicate of the early event.
    await shop.handled(1, () => emulator.complete(transactionId));
    expect(await amounts('early')).toEqual([10]);
  });

  it('the shop does not record a transaction that does not exist in the API', async () => {
    const data = { transactionId: 'made-up', amount: 10, externalReference: 'forged' };
    emulator.sendEvent({ eventType: 'transaction.completed', data });
    await emulator.idle();
    expect(emulator.deliveries({ transactionId: 'made-up' })[0]?.response?.status).toBe(200);
    await shop.process.prints(/record-payment.*404/);
    expect(await amounts('forged')).toEqual([]);
    // The failure is logged before the delivery is pending again.
    await eventually(async () => expect(await shop.deliveries()).toMatchObject({ pending: 1 }));
  });
});

it('an order is stored if the payments service is not reachable', async () => {
  await using emulator = await PaymentsEmulator.start();
  const settings = settingsFor(emulator);
  await emulator.close();
  await using shop = await RunningShop.start(settings);
  const { status, body } = await shop.post({ reference: 'alone', amount: 9 });
  expect([status, body.checkoutUrl]).toEqual([201, null]);
  await shop.process.prints(/WARN.*Order alone has no checkout page/);
});
