/**
 * Time and chance, handed in: everything in this package that waits, measures or jitters asks this object,
 * so that a test can hold both in its hand.
 */
export interface PaymentsRuntime {
  /** The wall clock, in milliseconds since the epoch. It may jump either way. */
  now(): number;
  /** A clock that never goes back, in milliseconds from any start. It may stand still while a machine sleeps. */
  monotonic(): number;
  /** A number from 0 (included) to 1 (excluded). */
  random(): number;
  /**
   * Calls `callback` once, `ms` milliseconds from now, unless the returned function is called first.
   * The timer keeps no process alive.
   */
  schedule(ms: number, callback: () => void): () => void;
}

/** The machine's own clocks, timers and `Math.random`. */
export const systemRuntime: PaymentsRuntime = Object.freeze({
  now: () => Date.now(),
  monotonic: () => performance.now(),
  random: () => Math.random(),
  schedule: (ms: number, callback: () => void) => {
    const timer = setTimeout(callback, ms);
    timer.unref();
    return () => clearTimeout(timer);
  },
});

/** Nest injection token of the {@link PaymentsRuntime} in use. */
export const PAYMENTS_RUNTIME = Symbol('PAYMENTS_RUNTIME');
