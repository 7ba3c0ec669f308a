import { setTimeout } from 'node:timers/promises';
import type { PaymentsEmulator } from 'payments-emulator';
import type { ShopClient } from '../shop.client.js';
import type { SeededRandom } from './seeded.random.js';

/** How the service misbehaves all the while. */
export const TROUBLE = {
  delivery: {
    duplicate: { probability: 0.3 },
    delay: { probability: 0.3, ms: [0, 400] },
    reorder: { probability: 0.3, window: 5, maxWaitMs: 400 },
    redeliver: [...Array<number>(10).fill(300), ...Array<number>(10).fill(1500)],
  },
  api: { slow: { probability: 0.5, ms: [0, 250] }, error: { probability: 0.03 } },
} as const;

/** Payments, some of them for orders that are placed just before, until `signal` aborts. Resolves with their ids. */
export async function payOn(
  emulator: PaymentsEmulator,
  customer: ShopClient,
  random: SeededRandom,
  signal: AbortSignal,
): Promise<string[]> {
  const paid: string[] = [];
  while (!signal.aborted) {
    const externalReference = `order-${paid.length}`;
    const amount = random.between(1, 100_000) / 100;
    // A shop that is down takes no order; the money is booked all the same.
    if (random.next() < 0.2) await customer.place(externalReference, amount).catch(() => {});
    const { transactionId } = emulator.createStkPush({ amount, externalReference });
    emulator.complete(transactionId);
    paid.push(transactionId);
    await setTimeout(random.between(5, 60), undefined, { signal }).catch(() => {});
  }
  return paid;
}
