import type { PaymentsRuntime } from './payments-runtime.js';

const SECOND_MS = 1000;

/** At most `perSecond` permits within any period of one second, on the monotonic clock. */
export class RateLimit {
  /** When the latest permits were taken, as a ring: the next place holds the oldest of them. */
  readonly #taken: Float64Array;
  #next = 0;

  constructor(
    perSecond: number,
    private readonly runtime: Pick<PaymentsRuntime, 'monotonic'>,
  ) {
    this.#taken = new Float64Array(perSecond).fill(-Infinity);
  }

  /** Takes a permit. `false` if there is none now. */
  take(): boolean {
    const now = this.runtime.monotonic();
    if (now - this.#taken[this.#next]! < SECOND_MS) return false;
    this.#taken[this.#next] = now;
    this.#next = (this.#next + 1) % this.#taken.length;
    return true;
  }
}
