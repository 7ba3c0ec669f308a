import type { PlannedEvent } from './event-plan.js';
import type { SeededRandom } from './seeded-random.js';

/** A payment that an application process expects and requests during a chaos run. */
export interface PlannedPayment {
  /** The reference of the expectation. Payments of the outcome `never` begin with `overdue-`. */
  readonly reference: string;
  /** When the purchase is sent, in milliseconds after sending begins, and the number of the process that receives it. */
  readonly atMs: number;
  readonly target: number;
  /** What the customer does at the payments service. */
  readonly outcome: 'paid' | 'declined' | 'never';
  /** The milliseconds from the request to the service until the customer pays or declines. */
  readonly delayMs: number;
  /** The service creates the transaction, and closes the connection without a response. */
  readonly losesResponse: boolean;
  /** The service sends a webhook request when the transaction is paid. */
  readonly webhook: boolean;
  /** Once the webhook request is acknowledged, the service returns the paid transaction as declined. */
  readonly contradicts: boolean;
  /** Unusual behaviour of handlers, by name; `null` if there is none. */
  readonly actions: PlannedEvent['actions'];
}

/** Reference of an expectation with a short schedule, which becomes overdue. */
export const OVERDUE_PREFIX = 'overdue-';

/** Delays of the polls of a payment, in milliseconds: often for a minute, then for longer than a chaos run waits. */
export const SCHEDULE: readonly number[] = Array.from({ length: 100 }, (_, index) =>
  index < 60 ? 400 + index * 800 : 48_000 + (index - 59) * 60_000,
);

/** Delays of the polls of a payment that becomes overdue. */
export const OVERDUE_SCHEDULE: readonly number[] = [300, 700, 1500];

/** The payments of a chaos run. They depend only on the random numbers and the arguments. */
export function planPayments(
  random: SeededRandom,
  run: {
    readonly seconds: number;
    readonly processes: number;
    readonly perSecond: number;
    /** `false`: the service sends no webhook request. */
    readonly webhooks: boolean;
  },
): PlannedPayment[] {
  const payments: PlannedPayment[] = [];
  for (let atMs = 0; atMs < run.seconds * 1000; atMs += random.between(0, 2000 / run.perSecond)) {
    const drawn = random.next();
    const outcome = drawn < 0.06 ? 'never' : drawn < 0.16 ? 'declined' : 'paid';
    const webhook = random.chance(0.75) && outcome === 'paid' && run.webhooks;
    payments.push({
      reference: `${outcome === 'never' ? OVERDUE_PREFIX : 'payment-'}${payments.length}`,
      atMs,
      target: random.between(0, run.processes - 1),
      outcome,
      // Polls take place about every 800 ms, so that webhook requests and polls race.
      delayMs: random.pick([random.between(1, 300), random.between(300, 1300), 4000]),
      losesResponse: random.chance(0.15),
      webhook,
      contradicts: webhook && random.chance(0.2),
      actions: random.pick([null, null, null, { book: 'slow' }, { book: 'fail' }, LATE_FAILURE]),
    });
  }
  return payments;
}

const LATE_FAILURE = { audit: 'fail-after-commit' } as const;
