import type { ShownOrder } from '../shop.client.js';
import type { Scene } from './scene.js';

const ORDERS = ['rice-14', 'beans-15', 'salt-16', 'oil-17', 'flour-18', 'maize-19'] as const;
/** Paid while the shop that was killed is down. */
const LATE = ['eggs-20', 'honey-21'] as const;

/** How long the handlers ask the API, so that there is a middle to be killed in. */
const ASKING_MS = 700;
/** Soon, and for as long as a shop may take to start on a machine that is busy. */
const REDELIVER_MS = [...Array<number>(10).fill(500), ...Array<number>(10).fill(5000)];
/** For leases to run out, and a shop to start, on such a machine. */
const RECOVERY_MS = 40_000;

/** Power fails, and nobody drains anything: what was acknowledged is in the books of the shop all the same. */
export const crash: Scene = {
  title: 'A shop is killed (SIGKILL) while it books, and started again',
  async play({ customer, emulator, pay, report, shops }) {
    const orders: ShownOrder[] = [];
    for (const reference of [...ORDERS, ...LATE]) orders.push(await customer.place(reference, 40));
    emulator.setFaults({
      api: { slow: { ms: ASKING_MS } },
      delivery: { redeliver: REDELIVER_MS },
    });
    for (const order of orders.slice(0, ORDERS.length)) await pay(order);
    await report.check('payments it is booking when it is killed', 'some', async () => {
      const { running = 0 } = await customer.inbox();
      return running > 0 ? 'some' : 'none';
    });
    await shops.kill(0);
    for (const order of orders.slice(ORDERS.length)) await pay(order);
    await shops.restart(0);

    await report.check(
      'orders paid, the two of the meantime included',
      orders.length,
      async () => {
        const now = await Promise.all(orders.map(({ reference }) => customer.order(reference)));
        return now.filter(({ status }) => status === 'paid').length;
      },
      RECOVERY_MS,
    );
    await emulator.idle();
    emulator.setFaults({});
    await report.check('their payments in the ledger', orders.length, async () => {
      const references = new Set<unknown>(orders.map(({ reference }) => reference));
      return (await customer.ledger()).filter(({ reference }) => references.has(reference)).length;
    });
  },
};
