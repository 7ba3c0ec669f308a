import { checkFields, isWhole, optional, whole } from '../errors/option-checks.js';
import type { OptionChecks } from '../errors/option-checks.js';

const DAY = 86_400_000;
const MAX_WAIT_MS = 7 * DAY;
const MAX_ATTEMPTS = 1000;

/**
 * A retry schedule: when a failed delivery is retried, and after how many attempts it becomes a dead letter. Use
 * {@link none}, or the result of {@link exponential} or {@link fixed}.
 */
export interface RetrySchedule {
  /** Number of attempts until a delivery becomes a dead letter, including the first: the number of waits plus one. */
  readonly attempts: number;
  /** Milliseconds to wait after each failed attempt except the last, before jitter. */
  readonly waitsMs: readonly number[];
  /** Each wait is multiplied by a random factor from 1 to `1 + jitter`. */
  readonly jitter: 0 | 1;
}

/** Options of {@link exponential}. Every field has a default. */
export interface ExponentialOptions {
  /** Attempts until a delivery becomes a dead letter, including the first. 1 to 1,000. Default 16. */
  readonly attempts?: number;
  /** The wait after the first attempt in milliseconds, before jitter. 1 to 86,400,000 (a day). Default 1,000. */
  readonly firstMs?: number;
  /** The wait after attempt n is `firstMs * n ** exponent`, before jitter. 0 to 10. Default 4. */
  readonly exponent?: number;
  /** Maximum wait in milliseconds, before jitter. 1 to 604,800,000 (7 days). Default 86,400,000 (a day). */
  readonly maxMs?: number;
}

/**
 * A retry schedule whose waits grow: after attempt n, `firstMs * n ** exponent` milliseconds, at most `maxMs`, times a
 * random factor from 1 to 2. The defaults give 16 attempts in about three days: the waits are about 1.5 s, 24 s, 2 min,
 * 6 min, …, 21 h.
 *
 * @throws PaymentsError `options_invalid`; the message names the field, its unit and bounds.
 * @example
 * ```ts
 * @OnPaymentEvent('transaction.completed', { retry: exponential({ attempts: 10 }) })
 * ```
 */
export function exponential(options: ExponentialOptions = {}): RetrySchedule {
  const { attempts, firstMs, exponent = 4, maxMs } = checkFields('exponential', options, CHECKS);
  const waits = Array.from({ length: attempts - 1 }, (_, index) =>
    Math.round(Math.min(maxMs, firstMs * (index + 1) ** exponent)),
  );
  return schedule(waits, 1);
}

const CHECKS = {
  attempts: whole({ default: 16, min: 1, max: MAX_ATTEMPTS, unit: 'attempts' }),
  firstMs: whole({ default: 1000, min: 1, max: DAY, unit: 'milliseconds' }),
  exponent: optional<number>(
    'a number from 0 to 10',
    (value) => typeof value === 'number' && value >= 0 && value <= 10,
  ),
  maxMs: whole({ default: DAY, min: 1, max: MAX_WAIT_MS, unit: 'milliseconds' }),
} satisfies OptionChecks<ExponentialOptions>;

/**
 * A retry schedule with exactly these waits, without jitter: `fixed([60_000, 3_600_000])` makes three attempts.
 *
 * @param waitsMs at most 999 waits, each a whole number of milliseconds from 0 to 604,800,000 (7 days)
 * @throws TypeError for a value out of bounds.
 */
export function fixed(waitsMs: readonly number[]): RetrySchedule {
  if (areWaits(waitsMs)) return schedule([...waitsMs], 0);
  throw new TypeError(
    `fixed() needs a list of at most ${MAX_ATTEMPTS - 1} waits, each a whole number of milliseconds from 0 to ${MAX_WAIT_MS}.`,
  );
}

/** No retries: a delivery becomes a dead letter after its first failed attempt. */
export const none: RetrySchedule = fixed([]);

function schedule(waitsMs: readonly number[], jitter: 0 | 1): RetrySchedule {
  return Object.freeze({
    attempts: waitsMs.length + 1,
    waitsMs: Object.freeze(waitsMs),
    jitter,
  });
}

/**
 * Returns the whole milliseconds to wait after a failed attempt; `null` after the last attempt, which makes the
 * delivery a dead letter.
 *
 * @param attempt number of the failed attempt, from 1
 * @param random from 0 (included) to 1 (excluded)
 */
export function nextRetryMs(
  { attempts, waitsMs, jitter }: RetrySchedule,
  attempt: number,
  random: number,
): number | null {
  if (attempt >= attempts) return null;
  return Math.round(waitsMs[attempt - 1]! * (1 + jitter * random));
}

export const checkRetrySchedule = optional<RetrySchedule>(
  'a retry schedule: exponential(…), fixed([…]) or none',
  ({ attempts, waitsMs, jitter }) =>
    areWaits(waitsMs) && attempts === waitsMs.length + 1 && (jitter === 0 || jitter === 1),
);

function areWaits(value: unknown): value is readonly number[] {
  return (
    Array.isArray(value) &&
    value.length < MAX_ATTEMPTS &&
    value.every((waitMs) => isWhole(waitMs, 0, MAX_WAIT_MS))
  );
}
