import { setTimeout } from 'node:timers/promises';
import type { Stage } from '../stage.js';

const PRODUCTS = [
  ['tea', 350],
  ['coffee', 420.5],
  ['mandazi', 99.99],
  ['sugar', 180],
  ['milk', 65.1],
  ['bread', 120],
] as const;

/** Payments of a round, over and over: a shop has its busy minutes. */
const ROUNDS = [2, 5, 3, 7, 4, 1, 6];

const PACE_MS = 3000;

/**
 * Has customers buy and pay until there is something to see of every minute: rounds of payments, some of them told of
 * twice, some unasked for, at a service that is slow now and then. Resolves once all of it is booked.
 */
export async function playTraffic(
  { customer, emulator, pay }: Stage,
  minutes: number,
  signal: AbortSignal,
): Promise<void> {
  const end = performance.now() + minutes * 60_000;
  let number = 1000;
  for (let round = 0; round === 0 || performance.now() < end; round += 1) {
    const slow = round % 5 === 3 ? { api: { slow: { ms: [50, 900] as [number, number] } } } : {};
    emulator.setFaults({ delivery: { duplicate: { probability: 0.2 } }, ...slow });
    for (let at = 0; at < ROUNDS[round % ROUNDS.length]!; at += 1) {
      const [product, price] = PRODUCTS[number % PRODUCTS.length]!;
      await pay(await customer.place(`${product}-${++number}`, price));
    }
    if (round % 6 === 2) {
      const walkIn = { amount: 40, externalReference: `walk-in-${number}` };
      emulator.complete(emulator.createStkPush(walkIn).transactionId);
    }
    await setTimeout(PACE_MS, undefined, { signal });
  }
  emulator.setFaults({});
  await emulator.idle();
  await settled(async () => {
    const { pending = 0, running = 0 } = await customer.inbox();
    return pending + running === 0;
  }, signal);
}

/** Looks until it is so. */
export async function settled(look: () => Promise<boolean>, signal: AbortSignal): Promise<void> {
  while (!(await look())) await setTimeout(50, undefined, { signal });
}
