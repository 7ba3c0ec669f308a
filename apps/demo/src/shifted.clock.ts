import type { EmulatorClock } from 'payments-emulator';

/** The machine's clock, which can be set ahead: timers run as they do, and tokens expire at once. */
export class ShiftedClock implements EmulatorClock {
  #aheadMs = 0;

  now(): number {
    return Date.now() + this.#aheadMs;
  }

  setAhead(ms: number): void {
    this.#aheadMs += ms;
  }

  setTimeout(callback: () => void, ms: number): unknown {
    return setTimeout(callback, ms);
  }

  clearTimeout(handle: unknown): void {
    clearTimeout(handle as NodeJS.Timeout);
  }
}
