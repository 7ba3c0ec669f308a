import type { Scene } from '../demo-environment.js';

const ORDERS = [
  ['tea-1', 350],
  ['coffee-2', 420.5],
  ['mandazi-3', 99.99],
  ['sugar-4', 180],
  ['milk-5', 65.1],
  ['bread-6', 120],
] as const;

/** A scene in which webhook requests are duplicated and reordered. The shop must record each payment once. */
export const busyMorning: Scene = {
  title: 'Six orders are paid, and every delivery arrives twice and out of order',
  async play({ customer, deliveries, emulator, pay, report }) {
    const orders = [];
    for (const [reference, amount] of ORDERS)
      orders.push(await customer.createOrder(reference, amount));
    const withCheckout = orders.filter(({ checkoutUrl }) => checkoutUrl !== null);
    await report.check('orders with a checkout page', ORDERS.length, () => withCheckout.length);

    const before = deliveries.length;
    const copies = 2 * ORDERS.length;
    emulator.setFaults({
      delivery: { duplicate: {}, reorder: { window: copies, maxWaitMs: 10_000 } },
    });
    const paid: string[] = [];
    for (const order of orders) paid.push(await pay(order));
    await emulator.idle();
    emulator.setFaults({});

    const arrived = deliveries.slice(before);
    const inOrder = paid.flatMap((id) => [id, id]);
    await report.check(
      'deliveries with response 200',
      copies,
      () => arrived.filter(({ response }) => response?.status === 200).length,
    );
    await report.check('deliveries arrived in order', 'no', () =>
      arrived.every(({ transactionId }, index) => transactionId === inOrder[index]) ? 'yes' : 'no',
    );
    await report.check('orders paid', ORDERS.length, async () => {
      const current = await Promise.all(ORDERS.map(([reference]) => customer.order(reference)));
      return current.filter(({ status }) => status === 'paid').length;
    });
    await report.check(
      'payments in the ledger',
      ORDERS.length,
      async () => (await customer.ledger()).length,
    );
  },
};
