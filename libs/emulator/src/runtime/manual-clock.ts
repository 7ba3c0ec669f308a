import type { EmulatorClock } from './emulator-clock.js';

interface Timer {
  readonly due: number;
  readonly callback: () => void;
}

/**
 * A clock for tests. Only `advance(ms)` changes its time.
 *
 * @example
 * const clock = new ManualClock();
 * const emulator = await PaymentsEmulator.start({ clock });
 * clock.advance(3_600_000); // every token issued so far has expired
 */
export class ManualClock implements EmulatorClock {
  readonly #timers = new Set<Timer>();
  #now: number;

  /** @param start milliseconds since the Unix epoch. Default: the current system time. */
  constructor(start: number = Date.now()) {
    this.#now = start;
  }

  now(): number {
    return this.#now;
  }

  setTimeout(callback: () => void, ms: number): unknown {
    const timer: Timer = { due: this.#now + Math.max(0, ms), callback };
    this.#timers.add(timer);
    return timer;
  }

  clearTimeout(handle: unknown): void {
    this.#timers.delete(handle as Timer);
  }

  /** Number of timers that have not fired yet. */
  get pending(): number {
    return this.#timers.size;
  }

  /**
   * Moves the time forward by `ms` milliseconds, and fires the timers that become due, in the order of their due times.
   * Also fires timers that the callbacks set, if these timers become due.
   *
   * @throws TypeError if `ms` is negative or not a number
   */
  advance(ms: number): void {
    if (!(ms >= 0)) {
      throw new TypeError(`advance(ms) takes 0 or more milliseconds, not ${ms}`);
    }
    const end = this.#now + ms;
    for (let next = this.#earliest(end); next; next = this.#earliest(end)) {
      this.#timers.delete(next);
      this.#now = next.due;
      next.callback();
    }
    this.#now = end;
  }

  #earliest(end: number): Timer | undefined {
    let earliest: Timer | undefined;
    for (const timer of this.#timers) {
      if (timer.due <= end && (!earliest || timer.due < earliest.due)) earliest = timer;
    }
    return earliest;
  }
}
