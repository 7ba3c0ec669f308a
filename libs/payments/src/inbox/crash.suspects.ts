import type { ClaimedDelivery } from './store.contract.js';
import type { ResolvedWorkerOptions } from './worker.options.js';

/** Between two of them; less where there are many, so that the last need not wait for more than `MOST_MS`. */
const APART_MS = 250;
const MOST_MS = 5000;

/** What a claim brought: to be started now, and to be given back for later. */
export interface Parted {
  readonly now: readonly ClaimedDelivery[];
  readonly later: readonly { readonly delivery: ClaimedDelivery; readonly inMs: number }[];
}

/**
 * Parts deliveries whose process died while they ran. One of them may be what it died of, and their leases end
 * together: begun together again, they would die together, attempt by attempt, until the innocent are dead
 * letters too. So one is begun now and the others one by one; their attempts are not charged.
 */
export function apart(
  deliveries: readonly ClaimedDelivery[],
  { maxAttempts }: Pick<ResolvedWorkerOptions, 'maxAttempts'>,
): Parted {
  // One that is out of attempts is not run any more, so it harms nobody.
  const suspects = deliveries.filter(
    ({ takenOver, attempt }) => takenOver && attempt <= maxAttempts,
  );
  const stepMs = Math.min(APART_MS, MOST_MS / suspects.length);
  const later = suspects
    .slice(1)
    .map((delivery, index) => ({ delivery, inMs: Math.round((index + 1) * stepMs) }));
  const waiting = new Set(later.map(({ delivery }) => delivery));
  return { now: deliveries.filter((delivery) => !waiting.has(delivery)), later };
}
