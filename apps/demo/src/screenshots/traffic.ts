import { setTimeout } from 'node:timers/promises';
import type { DemoEnvironment } from '../demo-environment.js';

const PRODUCTS = [
  ['tea', 350],
  ['coffee', 420.5],
  ['mandazi', 99.99],
  ['sugar', 180],
  ['milk', 65.1],
  ['bread', 120],
] as const;

/**
 * The number of payments in each round. After the last number, the list starts again. The numbers differ, because the
 * load of a shop varies.
 */
const PAYMENTS_PER_ROUND = [2, 5, 3, 7, 4, 1, 6];

const PAUSE_MS = 3000;
const POLL_MS = 50;

/**
 * Creates and pays orders in rounds. Some events arrive twice, some payments match no order, and the API is sometimes
 * slow. Resolves when all payments are recorded.
 */
export async function playTraffic(
  { customer, emulator, pay }: DemoEnvironment,
  minutes: number,
  signal: AbortSignal,
): Promise<void> {
  const end = performance.now() + minutes * 60_000;
  let number = 1000;
  for (let round = 0; round === 0 || performance.now() < end; round += 1) {
    const delay = round % 5 === 3 ? { api: { slow: { ms: [50, 900] as [number, number] } } } : {};
    emulator.setFaults({ delivery: { duplicate: { probability: 0.2 } }, ...delay });
    for (
      let count = 0;
      count < PAYMENTS_PER_ROUND[round % PAYMENTS_PER_ROUND.length]!;
      count += 1
    ) {
      const [product, price] = PRODUCTS[number % PRODUCTS.length]!;
      await pay(await customer.createOrder(`${product}-${++number}`, price));
    }
    if (round % 6 === 2) {
      const walkIn = { amount: 40, externalReference: `walk-in-${number}` };
      emulator.complete(emulator.createStkPush(walkIn).transactionId);
    }
    await setTimeout(PAUSE_MS, undefined, { signal });
  }
  emulator.setFaults({});
  await emulator.idle();
  for (let open = 1; open > 0;) {
    await setTimeout(POLL_MS, undefined, { signal });
    const { pending = 0, running = 0 } = await customer.inbox();
    open = pending + running;
  }
}
