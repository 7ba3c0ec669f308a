/**
 * The emulator's time: the wall clock it stamps tokens and events with, and the timers behind its
 * timeouts, delays and redeliveries. Hand in a {@link ManualClock} and a test needs no sleeping.
 */
export interface EmulatorClock {
  /** Milliseconds since the Unix epoch. */
  now(): number;
  /** Calls `callback` once, `ms` milliseconds from now, and answers a handle for `clearTimeout`. */
  setTimeout(callback: () => void, ms: number): unknown;
  /** Forgets a timer. One that has fired, or was never set, is no error. */
  clearTimeout(handle: unknown): void;
}

/** The machine's own clock. */
export const systemClock: EmulatorClock = {
  now: () => Date.now(),
  setTimeout: (callback, ms) => setTimeout(callback, ms),
  clearTimeout: (handle) => clearTimeout(handle as NodeJS.Timeout),
};
