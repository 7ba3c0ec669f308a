/**
 * The clock that the emulator uses for the timestamps of tokens and events, and for the timers of timeouts, delays and
 * redeliveries. With a {@link ManualClock}, tests control the time and do not have to wait.
 */
export interface EmulatorClock {
  /** Milliseconds since the Unix epoch. */
  now(): number;
  /** Calls `callback` once, `ms` milliseconds from now. Returns a handle for `clearTimeout`. */
  setTimeout(callback: () => void, ms: number): unknown;
  /** Cancels a timer. Does nothing if the timer has fired or does not exist. */
  clearTimeout(handle: unknown): void;
}

/** The system clock; the default. */
export const systemClock: EmulatorClock = {
  now: () => Date.now(),
  setTimeout: (callback, ms) => setTimeout(callback, ms),
  clearTimeout: (handle) => clearTimeout(handle as NodeJS.Timeout),
};
