import type { EmulatorClock } from 'payments-emulator';

/**
 * The system clock with an offset. A token expires at once if the clock is advanced past the expiry of the token. The
 * offset does not affect timers.
 */
export class AdjustableClock implements EmulatorClock {
  #offsetMs = 0;

  now(): number {
    return Date.now() + this.#offsetMs;
  }

  /** Advances the time. */
  advance(ms: number): void {
    this.#offsetMs += ms;
  }

  setTimeout(callback: () => void, ms: number): unknown {
    return setTimeout(callback, ms);
  }

  clearTimeout(handle: unknown): void {
    clearTimeout(handle as NodeJS.Timeout);
  }
}
