import type { PaymentsRuntime } from './payments-runtime.js';

/** Bounds of an exponential backoff, in milliseconds. */
export interface BackoffBounds {
  /** The wait after the first failure. It doubles with each further one. */
  readonly firstMs: number;
  /** The longest wait. */
  readonly maxMs: number;
}

/** For an operation that fails because a database is down: 100 ms after the first failure, at most 5 s. */
export const STORE_BACKOFF: BackoffBounds = Object.freeze({ firstMs: 100, maxMs: 5000 });

/**
 * Milliseconds to wait after the given number of failures in a row, from 1: a value between half of a bound and the
 * bound, so that processes that failed together do not retry together.
 *
 * @param random from 0 to 1; 0 gives the bound itself
 */
export function backoffMs(
  { firstMs, maxMs }: BackoffBounds,
  failures: number,
  random: number,
): number {
  // The exponent must stay finite over a long outage.
  const bound = Math.min(maxMs, firstMs * 2 ** Math.min(failures - 1, 30));
  return Math.round(bound * (1 - random / 2));
}

/** Exponential backoff with jitter: how long to wait after each failure in a row. */
export class Backoff {
  #failures = 0;

  constructor(
    private readonly runtime: Pick<PaymentsRuntime, 'random'>,
    private readonly bounds: BackoffBounds,
  ) {}

  /** Whole milliseconds to wait after one more failure. */
  nextMs(): number {
    this.#failures += 1;
    return backoffMs(this.bounds, this.#failures, this.runtime.random());
  }

  /** Starts over, after a success. */
  reset(): void {
    this.#failures = 0;
  }
}
