import { growingWaitMs } from '../runtime/backoff.js';

const DAY = 86_400_000;
const MAX_WAIT_MS = 7 * DAY;
const MAX_ATTEMPTS = 1000;
const BOUNDS = {
  attempts: { min: 1, max: MAX_ATTEMPTS, unit: 'attempts' },
  firstMs: { min: 1, max: DAY, unit: 'milliseconds' },
  maxMs: { min: 1, max: MAX_WAIT_MS, unit: 'milliseconds' },
} as const;

/** Waits that grow with a power of the attempt's number; see {@link exponential}. */
export interface ExponentialRetrySchedule {
  readonly kind: 'exponential';
  /** Attempts until a delivery becomes a dead letter, including the first. */
  readonly attempts: number;
  /** The wait after the first attempt, in milliseconds, before jitter. */
  readonly firstMs: number;
  /** The wait after attempt n is `firstMs * n ** exponent`, before jitter. */
  readonly exponent: number;
  /** Maximum wait in milliseconds, before jitter. */
  readonly maxMs: number;
}

/** Waits from a list; see {@link fixed}. */
export interface FixedRetrySchedule {
  readonly kind: 'fixed';
  /** Attempts until a delivery becomes a dead letter, including the first: one more than there are waits. */
  readonly attempts: number;
  /** Milliseconds to wait after each failed attempt except the last. */
  readonly waitsMs: readonly number[];
}

/**
 * When a failed delivery is retried, and after how many attempts it becomes a dead letter: {@link none}, or the result
 * of {@link exponential} or {@link fixed}.
 */
export type RetrySchedule = ExponentialRetrySchedule | FixedRetrySchedule;

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
 * @throws TypeError for a value out of bounds; the message names the field, its unit and bounds.
 * @example
 * ```ts
 * @OnPaymentEvent('transaction.completed', { retry: exponential({ attempts: 10 }) })
 * ```
 */
export function exponential(options: ExponentialOptions = {}): ExponentialRetrySchedule {
  const { attempts = 16, firstMs = 1000, exponent = 4, maxMs = DAY } = options;
  const schedule = { kind: 'exponential', attempts, firstMs, exponent, maxMs } as const;
  assertRetrySchedule(schedule, 'exponential()');
  return Object.freeze(schedule);
}

/**
 * A retry schedule with exactly these waits, without jitter: `fixed([60_000, 3_600_000])` makes three attempts.
 *
 * @param waitsMs at most 999 waits, each a whole number of milliseconds from 0 to 604,800,000 (7 days)
 * @throws TypeError for a value out of bounds.
 */
export function fixed(waitsMs: readonly number[]): FixedRetrySchedule {
  const waits: unknown = waitsMs;
  if (!Array.isArray(waits)) throw new TypeError('fixed() needs a list of milliseconds to wait.');
  const schedule = {
    kind: 'fixed',
    attempts: waitsMs.length + 1,
    waitsMs: Object.freeze([...waitsMs]),
  } as const;
  assertRetrySchedule(schedule, 'fixed()');
  return Object.freeze(schedule);
}

/** No retries: a delivery becomes a dead letter after its first failed attempt. */
export const none: FixedRetrySchedule = fixed([]);

/**
 * Whole milliseconds to wait after a failed attempt; `null` after the last attempt, which makes the delivery a dead
 * letter.
 *
 * @param attempt number of the failed attempt, from 1
 * @param random from 0 (included) to 1 (excluded)
 */
export function nextRetryMs(
  schedule: RetrySchedule,
  attempt: number,
  random: number,
): number | null {
  if (attempt >= schedule.attempts) return null;
  if (schedule.kind === 'fixed') return schedule.waitsMs[attempt - 1]!;
  return growingWaitMs(schedule, attempt ** schedule.exponent, 1 + random);
}

/** @throws TypeError if `value` is not a valid retry schedule. The message starts with `name`. */
export function assertRetrySchedule(value: unknown, name: string): asserts value is RetrySchedule {
  const schedule = (value ?? {}) as Partial<RetrySchedule>;
  if (schedule.kind === 'fixed') assertFixed(schedule.waitsMs, schedule.attempts, name);
  else if (schedule.kind === 'exponential') assertExponential(schedule, name);
  else throw new TypeError(`${name} must be a retry schedule: exponential(…), fixed([…]) or none.`);
}

function assertExponential(schedule: Partial<ExponentialRetrySchedule>, name: string): void {
  for (const [field, { min, max, unit }] of Object.entries(BOUNDS)) {
    const value = schedule[field as keyof typeof BOUNDS];
    if (!isWhole(value, min, max)) {
      throw new TypeError(
        `${name}: "${field}" must be a whole number of ${unit} from ${min} to ${max}.`,
      );
    }
  }
  const { exponent } = schedule;
  if (typeof exponent !== 'number' || !(exponent >= 0 && exponent <= 10)) {
    throw new TypeError(`${name}: "exponent" must be a number from 0 to 10.`);
  }
}

function assertFixed(waitsMs: unknown, attempts: unknown, name: string): void {
  const valid =
    Array.isArray(waitsMs) &&
    waitsMs.length < MAX_ATTEMPTS &&
    attempts === waitsMs.length + 1 &&
    waitsMs.every((waitMs) => isWhole(waitMs, 0, MAX_WAIT_MS));
  if (valid) return;
  throw new TypeError(
    `${name}: the waits must be at most ${MAX_ATTEMPTS - 1} whole numbers of milliseconds from 0 to ${MAX_WAIT_MS}.`,
  );
}

function isWhole(value: unknown, min: number, max: number): boolean {
  return Number.isSafeInteger(value) && (value as number) >= min && (value as number) <= max;
}
