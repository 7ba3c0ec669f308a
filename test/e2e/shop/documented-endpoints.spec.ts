import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { ScriptedPaymentsService } from '../../support/shop/scripted-payments-service.js';
import { RunningShop } from '../../support/shop/running-shop.js';

describe('the shop with a service that has the documented endpoints only', () => {
  let service: ScriptedPaymentsService;
  let shop: RunningShop;

  beforeAll(async () => {
    service = await ScriptedPaymentsService.start();
    const PAYMENTS_CHECKOUT_PATH = '/v1/some/invoices';
    shop = await RunningShop.start({ ...service.settings, PAYMENTS_CHECKOUT_PATH });
  });
  afterEach(() => {
    service.checkout = undefined;
  });
  afterAll(async () => {
    await shop?.[Symbol.asyncDispose]();
    await service?.[Symbol.asyncDispose]();
  });

  it('the shop stores an order without a checkout page, and marks the order as paid when its event arrives', async () => {
    const { status, body } = await shop.post({ reference: 'o-1', amount: 40 });
    expect([status, body.checkoutUrl]).toEqual([201, null]);
    await shop.process.prints(/WARN.*Order o-1 has no checkout page yet.*404/);
    const paid = service.pay('o-1', 40);
    await shop.handled(1, async () => {
      expect(await service.deliver(shop.webhookUrl, paid)).toBe(200);
    });
    expect(service.requests).toContain(`GET /v1/transactions/${paid.transactionId}`);
    expect(await shop.order('o-1')).toEqual({ ...body, status: 'paid' });
    expect(await shop.ledger('o-1')).toMatchObject([
      { transactionId: paid.transactionId, reference: 'o-1', amount: 40 },
    ]);
  });

  it('the shop creates invoices at the configured path, and uses only checkoutUrl of the response', async () => {
    const bodies: unknown[] = [];
    service.checkout = async (body) => {
      bodies.push(body);
      return { checkoutUrl: 'https://pay.example/i/1' };
    };
    const order = await shop.createOrder('o-2', 40.5);
    expect(order.checkoutUrl).toBe('https://pay.example/i/1');
    expect(bodies).toEqual([{ amount: 40.5, externalReference: 'o-2' }]);
    expect(service.requests.at(-1)).toBe('POST /v1/some/invoices');
  });

  it.each([[{}], [[]], ['text'], [{ checkoutUrl: 7 }], [{ checkoutUrl: '' }], [null]])(
    'the shop stores an order without a checkout page if the service responds with the invoice %j',
    async (invoice) => {
      service.checkout = async () => invoice;
      const reference = `invalid-${Buffer.from(JSON.stringify(invoice)).toString('hex')}`;
      expect(await shop.post({ reference, amount: 1 })).toMatchObject({
        status: 201,
        body: { checkoutUrl: null },
      });
    },
  );

  it('the shop matches a payment whose event arrives before the response with the invoice', async () => {
    const responses: number[] = [];
    service.checkout = async () => {
      await shop.handled(1, async () => {
        responses.push(await service.deliver(shop.webhookUrl, service.pay('quick', 40)));
      });
      return { checkoutUrl: 'https://pay.example/i/2' };
    };
    expect(await shop.createOrder('quick', 40)).toMatchObject({ status: 'paid' });
    expect(responses).toEqual([200]);
    expect((await shop.ledger('quick'))[0]).not.toHaveProperty('unmatched');
  });

  it('the shop records a payment without a reference as unmatched', async () => {
    const { externalReference: _, ...data } = service.pay('', 40);
    await shop.handled(1, () => service.deliver(shop.webhookUrl, data));
    const entry = (await shop.ledger()).find((e) => e.transactionId === data.transactionId);
    expect(entry).toMatchObject({ reference: null, amount: 40, unmatched: true });
  });
});

it('PAYMENTS_PAID_STATUS sets the status of a paid transaction', async () => {
  await using service = await ScriptedPaymentsService.start();
  await using shop = await RunningShop.start({
    ...service.settings,
    PAYMENTS_PAID_STATUS: 'settled',
  });
  const other = service.pay('o-1', 40);
  const paid = service.pay('o-2', 40);
  service.transactions.set(paid.transactionId, 'settled');
  await service.deliver(shop.webhookUrl, other);
  await service.deliver(shop.webhookUrl, paid);
  await shop.process.prints(/its status at the payments service is "complete", not "settled"/);
  await shop.recorded('o-2', [40]);
  expect(await shop.ledger('o-1')).toEqual([]);
});
