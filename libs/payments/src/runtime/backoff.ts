import type { PaymentsRuntime } from './payments-runtime.js';

export interface BackoffBounds {
  /** The wait after the first failure, before jitter. Waits after further failures grow from this wait. */
  readonly firstMs: number;
  /** The longest wait before jitter. */
  readonly maxMs: number;
}

/** Backoff of operations that fail because a database is down: from 100 ms up to 5 s. */
export const STORE_BACKOFF: BackoffBounds = Object.freeze({ firstMs: 100, maxMs: 5000 });

/**
 * Returns the whole milliseconds to wait after a number of failures in a row (from 1). The wait doubles with each failure;
 * jitter shortens it by up to half.
 *
 * @param random from 0 to 1; 0 gives the full wait
 */
export function backoffMs(
  { firstMs, maxMs }: BackoffBounds,
  failures: number,
  random: number,
): number {
  // The exponent is limited, so that the growth stays finite in a long outage.
  const waitMs = Math.min(maxMs, firstMs * 2 ** Math.min(failures - 1, 30));
  return Math.round(waitMs * (1 - random / 2));
}

export class Backoff {
  #failures = 0;

  constructor(
    private readonly runtime: Pick<PaymentsRuntime, 'random'>,
    private readonly bounds: BackoffBounds,
  ) {}

  /** Records a failure. Returns the whole milliseconds to wait after this failure. */
  nextMs(): number {
    this.#failures += 1;
    return backoffMs(this.bounds, this.#failures, this.runtime.random());
  }

  reset(): void {
    this.#failures = 0;
  }
}
