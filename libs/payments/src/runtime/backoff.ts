import type { PaymentsRuntime } from '../payments.runtime.js';

/** For an operation that fails because a database is down: 100 ms after the first failure, at most 5 s. */
export const STORE_BACKOFF = Object.freeze({ firstMs: 100, maxMs: 5000 });

/** Exponential backoff with jitter: how long to wait after each failure in a row. */
export class Backoff {
  #failures = 0;

  constructor(
    private readonly runtime: Pick<PaymentsRuntime, 'random'>,
    private readonly bounds: { readonly firstMs: number; readonly maxMs: number },
  ) {}

  /**
   * Whole milliseconds to wait after one more failure: a random value between half of a bound and the bound, which is
   * `firstMs` after the first failure and doubles with each further one, up to `maxMs`.
   */
  nextMs(): number {
    const { firstMs, maxMs } = this.bounds;
    // The exponent must stay finite over a long outage.
    const bound = Math.min(maxMs, firstMs * 2 ** Math.min(this.#failures, 30));
    this.#failures += 1;
    return Math.round(bound * (1 - this.runtime.random() / 2));
  }

  /** Starts over, after a success. */
  reset(): void {
    this.#failures = 0;
  }
}
