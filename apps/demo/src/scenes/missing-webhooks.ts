import { setTimeout } from 'node:timers/promises';
import type { Scene } from '../demo-environment.js';
import { POLL_INTERVAL_MS } from '../demo-environment.js';
import type { ShopOrder } from '../shop-client.js';

const ORDERS = ['pepper-22', 'ginger-23', 'garlic-24', 'onion-25'] as const;
/** Reference of an order that the customer pays after the first poll. */
const LATE = 'thyme-26';

/** The longest time between two polls, in milliseconds. Each delay is multiplied by a random factor from 0.9 to 1.1. */
const LONGEST_INTERVAL_MS = 1.3 * POLL_INTERVAL_MS;
/** Maximum time for the call to the service and for storing the ledger entry, in milliseconds. */
const BOOKING_MS = 1000;

/** A scene without webhook requests. The shop finds each payment by asking the service. */
export const missingWebhooks: Scene = {
  title:
    'The webhook is switched off for good, and the shop finds every payment by asking the service',
  async play({ customer, deliveries, emulator, pay, report }) {
    const before = deliveries.length;
    emulator.setFaults({ delivery: { off: true } });
    const paidAt = new Map<string, number>();
    const payNow = async (order: ShopOrder): Promise<void> => {
      await pay(order);
      paidAt.set(order.reference, Date.now());
    };
    const late = await customer.createOrder(LATE, 55);
    for (const reference of ORDERS) await payNow(await customer.createOrder(reference, 25));
    await setTimeout(LONGEST_INTERVAL_MS, undefined, { ref: false });
    await payNow(late);

    await report.check('orders paid, found by asking the service', paidAt.size, async () => {
      const orders = await Promise.all([...paidAt.keys()].map((each) => customer.order(each)));
      return orders.filter(({ status, foundByPoll }) => status === 'paid' && foundByPoll).length;
    });
    const entries = (await customer.ledger()).filter(({ reference }) => paidAt.has(reference!));
    await report.check('payments of these orders in the ledger', paidAt.size, () => entries.length);
    await report.check(
      'webhook requests that the shop received',
      0,
      () => deliveries.slice(before).filter(({ response }) => response).length,
    );
    const waits = entries.map(
      ({ reference, recordedAt }) => Date.parse(recordedAt) - paidAt.get(reference!)!,
    );
    const longest = Math.max(...waits);
    const inTime = longest <= LONGEST_INTERVAL_MS + BOOKING_MS;
    await report.check('all recorded within one poll interval', 'yes', () =>
      inTime ? 'yes' : 'no',
    );
    const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`;
    report.line(
      `        measured: recorded at most ${seconds(Math.max(0, longest))} after the payment, ` +
        `with a poll every ${seconds(POLL_INTERVAL_MS)} (random factor 0.9 to 1.1)`,
    );
    emulator.setFaults({});
  },
};

/** A scene with a declined payment. The service sends no webhook request for such a payment. */
export const declinedPayment: Scene = {
  title: 'A customer declines the payment, and the shop detects this by asking the service',
  async play({ customer, emulator, report }) {
    const { reference } = await customer.createOrder('shoes-27', 3200);
    const [transaction] = emulator.transactions({ externalReference: reference });
    emulator.fail(transaction!.transactionId);
    const { transactionId } = transaction!;
    await report.check(
      'the order',
      'declined',
      async () => (await customer.order(reference)).status,
    );
    await report.check(
      'webhook requests about this payment',
      0,
      () => emulator.deliveries({ transactionId }).length,
    );
  },
};
