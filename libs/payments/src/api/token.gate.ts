const FIRST_MS = 500;
const LONGEST_MS = 30_000;

/**
 * A gate that shuts at each failure, for 0.5 s, then 1 s, 2 s … up to 30 s, and lets nothing through until it
 * opens. One success and it starts over. Times are monotonic milliseconds.
 */
export class TokenGate {
  #failures = 0;
  #opensAt = -Infinity;

  /** Shuts the gate, for `atLeastMs` or longer. */
  fail(now: number, atLeastMs = 0): void {
    // 2 ** 6 * 500 is past the longest already; the exponent must not run away over a long outage.
    const backoff = Math.min(LONGEST_MS, FIRST_MS * 2 ** Math.min(this.#failures, 6));
    this.#failures += 1;
    this.#opensAt = now + Math.max(backoff, atLeastMs);
  }

  succeed(): void {
    this.#failures = 0;
    this.#opensAt = -Infinity;
  }

  /** How long the gate stays shut, in milliseconds; 0 where it is open. */
  waitMs(now: number): number {
    return Math.max(0, this.#opensAt - now);
  }
}
