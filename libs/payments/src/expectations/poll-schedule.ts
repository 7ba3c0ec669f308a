import type { NewExpectation, StoredExpectation } from '../inbox/store/expectation-store.js';
import type { PaymentsRuntime } from '../runtime/payments-runtime.js';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const MAX_DELAYS = 100;
const MAX_DELAY_MS = 365 * 24 * HOUR;
/** The jitter of a delay: a factor from 0.9 to 1.1. */
const MIN_FACTOR = 0.9;
const FACTORS = 0.2;

/** The default delays of the polls, in milliseconds after the creation of an expectation. */
export const DEFAULT_POLL_SCHEDULE: readonly number[] = Object.freeze([
  15_000,
  MINUTE,
  5 * MINUTE,
  15 * MINUTE,
  HOUR,
  6 * HOUR,
  24 * HOUR,
]);

type PollTimes = Pick<StoredExpectation, 'schedule' | 'dueBy' | 'createdAt'>;

/**
 * Returns the milliseconds from now until the next poll. Returns `overdue` if `dueBy` has passed or, without `dueBy`,
 * if the schedule has ended. If the schedule has no further delay, or if the next delay ends after `dueBy`, the next
 * poll takes place at `dueBy`.
 *
 * Every poll of the schedule takes place, even if no process was running or a clock jumped. If polls are late, the wait
 * for the next poll is the difference between its delay and the previous delay in the schedule. Additional polls, for
 * example of `askNow()`, do not shorten the schedule.
 *
 * @param polls how many polls have ended
 * @param elapsedMs milliseconds since the creation
 * @param random from 0 (included) to 1 (excluded)
 */
export function nextPollInMs(
  { schedule, dueBy, createdAt }: PollTimes,
  { polls, elapsedMs }: { readonly polls: number; readonly elapsedMs: number },
  random: number,
): number | 'overdue' {
  const leftMs = dueBy === null ? Infinity : dueBy.getTime() - createdAt.getTime() - elapsedMs;
  if (leftMs <= 0) return 'overdue';
  // A poll takes place after at least 0.9 of its delay, so this finds the first delay without a poll.
  const ahead = schedule.findIndex((delay) => delay * MIN_FACTOR > elapsedMs);
  const isLate = polls < schedule.length && (ahead === -1 || polls < ahead);
  const delayMs = schedule[isLate ? polls : ahead] ?? Infinity;
  const sinceMs = isLate ? (schedule[polls - 1] ?? 0) : elapsedMs;
  const nextMs = Math.min(delayMs * jitter(random) - sinceMs, leftMs);
  return nextMs === Infinity ? 'overdue' : Math.max(0, Math.ceil(nextMs));
}

/** How long an overdue expectation is polled, in milliseconds. */
const OVERDUE_MS = 30 * 24 * HOUR;

/**
 * Returns the milliseconds from now until the next poll of an overdue expectation whose last poll got no answer. The
 * wait is as long as the expectation has been overdue, but at least an hour and at most a day. `null` if the
 * expectation has been overdue for 30 days.
 *
 * @param elapsedMs milliseconds since the creation
 * @param random from 0 (included) to 1 (excluded)
 */
export function overduePollInMs(
  { schedule, dueBy, createdAt }: PollTimes,
  elapsedMs: number,
  random: number,
): number | null {
  const dueMs = dueBy === null ? schedule.at(-1)! : dueBy.getTime() - createdAt.getTime();
  const overdueMs = elapsedMs - dueMs;
  if (overdueMs > OVERDUE_MS) return null;
  return Math.ceil(Math.min(Math.max(HOUR, overdueMs), 24 * HOUR) * jitter(random));
}

/** Returns the milliseconds from the creation until the first poll; 0 if `dueBy` has passed. */
export function firstPollInMs(
  { schedule, dueInMs }: Pick<NewExpectation, 'schedule' | 'dueInMs'>,
  random: number,
): number {
  const leftMs = dueInMs === null ? Infinity : Math.max(0, dueInMs);
  return Math.ceil(Math.min(schedule[0]! * jitter(random), leftMs));
}

function jitter(random: number): number {
  return MIN_FACTOR + FACTORS * random;
}

export const POLL_SCHEDULE =
  `a list of 1 to ${MAX_DELAYS} delays after the creation, in ascending order, each a whole number of milliseconds from 0 ` +
  `to ${MAX_DELAY_MS}`;

export function isPollSchedule(value: unknown): value is readonly number[] {
  return (
    Array.isArray(value) &&
    value.length >= 1 &&
    value.length <= MAX_DELAYS &&
    value.every(
      (delay: unknown, index) =>
        Number.isSafeInteger(delay) &&
        (delay as number) > (index === 0 ? -1 : (value[index - 1] as number)) &&
        (delay as number) <= MAX_DELAY_MS,
    )
  );
}

/**
 * Maximum number of companies whose limits are stored. If there are more, the limits of the companies without running
 * or postponed polls are removed.
 */
const MAX_COMPANIES = 1000;

interface CompanyLimit {
  /** Number of polls that may start now. At most `maxPollsPerSecond`; a fraction counts towards the next poll. */
  tokens: number;
  /** When {@link tokens} was computed, on the monotonic clock. */
  at: number;
  running: number;
  /** No poll of the company starts before this time, because the service asked for a wait. On the monotonic clock. */
  refusedUntil: number;
  /** When the last of the postponed polls is due, on the monotonic clock. */
  postponedUntil: number;
}

/**
 * Limits the polls of each company in this process: how many start per second (a token bucket), and how many run at the
 * same time. Therefore, a company whose service hangs does not delay the polls of other companies.
 */
export class PollLimits {
  readonly #companies = new Map<string, CompanyLimit>();

  constructor(
    private readonly limits: { readonly maxPollsPerSecond: number; readonly concurrency: number },
    private readonly runtime: Pick<PaymentsRuntime, 'monotonic'>,
  ) {}

  /**
   * Returns 0 if a poll of the company may start now, and counts the poll as running until {@link ended} is called.
   * Otherwise returns the milliseconds until the caller should try again. Each postponed poll gets a different time, so
   * that not all postponed polls become due at once.
   */
  admit(company: string): number {
    const now = this.runtime.monotonic();
    const limit = this.#refilled(company, now);
    const { maxPollsPerSecond, concurrency } = this.limits;
    // A postponed poll becomes due when its token is complete. Because of rounding errors, 0.99 tokens are enough.
    if (limit.tokens > 0.99 && limit.running < concurrency && limit.refusedUntil <= now) {
      limit.tokens -= 1;
      limit.running += 1;
      return 0;
    }
    const from = Math.max(now, limit.postponedUntil, limit.refusedUntil);
    limit.postponedUntil = from + 1000 / maxPollsPerSecond;
    return Math.ceil(limit.postponedUntil - now);
  }

  /** Must be called when a poll of the company has ended. */
  ended(company: string): void {
    const limit = this.#companies.get(company);
    if (limit !== undefined) limit.running -= 1;
  }

  refuse(company: string, ms: number): void {
    const now = this.runtime.monotonic();
    const limit = this.#refilled(company, now);
    limit.refusedUntil = Math.max(limit.refusedUntil, now + ms);
  }

  #refilled(company: string, now: number): CompanyLimit {
    const { maxPollsPerSecond } = this.limits;
    const known = this.#companies.get(company);
    if (known === undefined) {
      if (this.#companies.size >= MAX_COMPANIES) this.#removeIdle(now);
      const tokens = maxPollsPerSecond;
      const limit = { tokens, at: now, running: 0, refusedUntil: now, postponedUntil: now };
      this.#companies.set(company, limit);
      return limit;
    }
    const refill = ((now - known.at) * maxPollsPerSecond) / 1000;
    known.tokens = Math.min(maxPollsPerSecond, known.tokens + refill);
    known.at = now;
    return known;
  }

  #removeIdle(now: number): void {
    for (const [company, { at, running, refusedUntil, postponedUntil }] of this.#companies) {
      const isIdle =
        running === 0 && now - at >= 1000 && Math.max(refusedUntil, postponedUntil) <= now;
      if (isIdle) this.#companies.delete(company);
    }
  }
}
