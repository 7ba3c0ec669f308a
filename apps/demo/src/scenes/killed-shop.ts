import type { Scene } from '../demo-environment.js';
import type { ShopOrder } from '../shop-client.js';

const ORDERS = ['rice-14', 'beans-15', 'salt-16', 'oil-17', 'flour-18', 'maize-19'] as const;
/** Orders that are paid while the killed shop is down. */
const LATE = ['eggs-20', 'honey-21'] as const;

/**
 * Duration of each call of the service's API, in milliseconds. The calls are slow, so that SIGKILL interrupts running
 * handlers.
 */
const API_DELAY_MS = 700;
/**
 * Pauses before the redeliveries, in milliseconds. The first pauses are short. Together, the later pauses are long
 * enough for a shop to start on a busy machine.
 */
const REDELIVER_MS = [...Array<number>(10).fill(500), ...Array<number>(10).fill(5000)];
/** Maximum time until the leases have expired and a shop has started on a busy machine, in milliseconds. */
const RECOVERY_MS = 40_000;

/** After a crash, the ledger must contain every payment for which the shop acknowledged the webhook request. */
export const killedShop: Scene = {
  title: 'A shop is killed (SIGKILL) while it records payments, and is then restarted',
  async play({ customer, emulator, pay, report, shops }) {
    const orders: ShopOrder[] = [];
    for (const reference of [...ORDERS, ...LATE])
      orders.push(await customer.createOrder(reference, 40));
    emulator.setFaults({
      api: { slow: { ms: API_DELAY_MS } },
      delivery: { redeliver: REDELIVER_MS },
    });
    for (const order of orders.slice(0, ORDERS.length)) await pay(order);
    await report.check('running handlers when the shop is killed', 'some', async () => {
      const { running = 0 } = await customer.inbox();
      return running > 0 ? 'some' : 'none';
    });
    await shops.kill(0);
    for (const order of orders.slice(ORDERS.length)) await pay(order);
    await shops.start(0);

    await report.check(
      'paid orders, two of them while the shop was down',
      orders.length,
      async () => {
        const current = await Promise.all(orders.map(({ reference }) => customer.order(reference)));
        return current.filter(({ status }) => status === 'paid').length;
      },
      RECOVERY_MS,
    );
    await emulator.idle();
    emulator.setFaults({});
    await report.check('payments of these orders in the ledger', orders.length, async () => {
      const references = new Set<unknown>(orders.map(({ reference }) => reference));
      return (await customer.ledger()).filter(({ reference }) => references.has(reference)).length;
    });
  },
};
