import {
  integerOption,
  optionsInvalid,
  rejectUnknownNames,
  shown,
} from '../../errors/payments-error.js';
import { backoffMs } from '../../runtime/backoff.js';

/**
 * When a GET or HEAD is retried. Other methods are retried only if no byte can have reached the service, never
 * because of `statuses`.
 */
export interface RetryPolicy {
  /** Number of attempts, including the first. 1 to 10. Default 3; 1 means no retry. */
  attempts: number;
  /**
   * Statuses that are retried: numbers from 400 to 599, or `'5xx'` for 500 to 599. Default 408, 429 and `'5xx'`. The
   * service documents only the status 401, so the default follows the general meaning of the HTTP statuses.
   */
  statuses: readonly (number | '5xx')[];
  /**
   * The longest wait before the second attempt, in milliseconds. It doubles with each attempt, and jitter shortens
   * it by up to half. 1 to 60,000. Default 200.
   */
  baseDelayMs: number;
  /** The longest wait between two attempts, in milliseconds. 1 to 300,000. Default 5,000. */
  maxDelayMs: number;
  /**
   * The longest wait that a `Retry-After` can cause, in milliseconds. A longer one is shortened to this. 0 to 300,000.
   * Default 15,000.
   */
  maxRetryAfterMs: number;
}

const DEFAULT_STATUSES: readonly (number | '5xx')[] = Object.freeze([408, 429, '5xx'] as const);

/**
 * Checks a policy and adds the defaults; `false` is a policy of one attempt.
 *
 * @throws PaymentsError `options_invalid`
 */
export function resolveRetryPolicy(input: Partial<RetryPolicy> | false | undefined): RetryPolicy {
  const given = input === false ? { attempts: 1 } : (input ?? {});
  if (typeof given !== 'object') {
    throw optionsInvalid(
      `"api.retry" must be a policy object, or false for no retries; it is ${shown(given)}.`,
    );
  }
  rejectUnknownNames('api.retry.', given, [
    'attempts',
    'statuses',
    'baseDelayMs',
    'maxDelayMs',
    'maxRetryAfterMs',
  ]);
  return Object.freeze({
    attempts: integerOption('api.retry.attempts', given.attempts, {
      default: 3,
      min: 1,
      max: 10,
      unit: 'attempts',
    }),
    statuses: resolveStatuses(given.statuses),
    baseDelayMs: milliseconds('api.retry.baseDelayMs', given.baseDelayMs, 200, 1, 60_000),
    maxDelayMs: milliseconds('api.retry.maxDelayMs', given.maxDelayMs, 5_000, 1, 300_000),
    maxRetryAfterMs: milliseconds(
      'api.retry.maxRetryAfterMs',
      given.maxRetryAfterMs,
      15_000,
      0,
      300_000,
    ),
  });
}

/** Whether the policy retries a response with this status. */
export function isRetryableStatus(policy: RetryPolicy, status: number): boolean {
  return policy.statuses.some((retried) =>
    retried === '5xx' ? status >= 500 && status <= 599 : retried === status,
  );
}

/**
 * Returns the wait before the next attempt, in milliseconds: an exponential backoff with jitter, or the `Retry-After`
 * of the response if that is longer. `maxRetryAfterMs` limits the `Retry-After`.
 *
 * @param failures number of failed attempts, from 1
 * @param random from 0 to 1
 */
export function retryDelayMs(
  policy: RetryPolicy,
  failures: number,
  random: number,
  retryAfterMs: number | undefined,
): number {
  const bounds = { firstMs: policy.baseDelayMs, maxMs: policy.maxDelayMs };
  const requestedMs = Math.min(retryAfterMs ?? 0, policy.maxRetryAfterMs);
  return Math.max(backoffMs(bounds, failures, random), requestedMs);
}

function milliseconds(name: string, value: unknown, def: number, min: number, max: number): number {
  return integerOption(name, value, { default: def, min, max, unit: 'milliseconds' });
}

function resolveStatuses(value: unknown): readonly (number | '5xx')[] {
  if (value === undefined) return DEFAULT_STATUSES;
  if (Array.isArray(value) && value.every(isStatus)) return Object.freeze([...value]);
  throw optionsInvalid(
    `"api.retry.statuses" must be an array of whole numbers from 400 to 599 and '5xx'` +
      (Array.isArray(value) ? '.' : `; it is ${shown(value)}.`),
  );
}

function isStatus(value: unknown): value is number | '5xx' {
  if (value === '5xx') return true;
  return typeof value === 'number' && Number.isInteger(value) && value >= 400 && value <= 599;
}
