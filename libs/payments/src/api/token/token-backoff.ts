import { backoffMs } from '../../runtime/backoff.js';

const BOUNDS = Object.freeze({ firstMs: 500, maxMs: 30_000 });

/**
 * Prevents requests for a while after each failure: for 0.5 s, then 1 s, 2 s, up to 30 s. A success ends it. Without
 * jitter, because callers get the wait as `retryAfterMs`. Times are on the monotonic clock, in milliseconds.
 */
export class TokenBackoff {
  #failures = 0;
  #until = -Infinity;

  /** Records a failure. No request is made for at least `atLeastMs`. */
  fail(now: number, atLeastMs = 0): void {
    this.#failures += 1;
    this.#until = now + Math.max(backoffMs(BOUNDS, this.#failures, 0), atLeastMs);
  }

  /** Records a success: requests can be made, and the next failure counts as the first. */
  succeed(): void {
    this.#failures = 0;
    this.#until = -Infinity;
  }

  /** How long no request should be made, in milliseconds; 0 if one can be made now. */
  waitMs(now: number): number {
    return Math.max(0, this.#until - now);
  }
}
