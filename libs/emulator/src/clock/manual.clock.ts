import type { EmulatorClock } from './emulator.clock.js';

interface Timer {
  readonly due: number;
  readonly callback: () => void;
}

/**
 * A clock that stands still until it is told to go on, for tests.
 *
 * @example
 * const clock = new ManualClock();
 * const emulator = await PaymentsEmulator.start({ clock });
 * clock.advance(3_600_000); // every token issued so far has expired
 */
export class ManualClock implements EmulatorClock {
  readonly #timers = new Set<Timer>();
  #now: number;

  /** @param start milliseconds since the Unix epoch. Default: the machine's time at this moment. */
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

  /** How many timers are set. */
  get pending(): number {
    return this.#timers.size;
  }

  /**
   * Goes `ms` milliseconds forward and fires what falls due on the way, in the order of the due
   * times, what a timer sets included.
   *
   * @throws TypeError where `ms` is negative or not a number: time does not run backwards.
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
