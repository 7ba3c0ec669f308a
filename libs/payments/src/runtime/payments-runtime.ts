/**
 * Clocks, timers, randomness and the name of the environment. All code in this package uses this object instead of the
 * clocks and timers of Node.js, so that tests can control time and randomness.
 */
export interface PaymentsRuntime {
  /** The wall clock, in milliseconds since the epoch. This clock may jump forwards and backwards. */
  now(): number;
  /**
   * A clock that never goes back, in milliseconds from an arbitrary start. This clock may stop while the machine
   * sleeps.
   */
  monotonic(): number;
  /** A number from 0 (included) to 1 (excluded). */
  random(): number;
  /**
   * Calls `callback` once, `ms` milliseconds from now, unless the returned function is called first.
   * The timer keeps no process alive.
   */
  schedule(ms: number, callback: () => void): () => void;
  /** The value of `NODE_ENV`. In `production`, options that lose data at a restart log a warning. */
  readonly environment?: string | undefined;
}

/** The longest delay of a timer of Node.js, in milliseconds: 24.8 days. A timer with a longer delay fires at once. */
export const MAX_TIMER_MS = 2 ** 31 - 1;

export const systemRuntime: PaymentsRuntime = Object.freeze({
  now: () => Date.now(),
  monotonic: () => performance.now(),
  random: () => Math.random(),
  schedule: (ms: number, callback: () => void) => {
    const timer = setTimeout(callback, ms);
    timer.unref();
    return () => clearTimeout(timer);
  },
  get environment() {
    return process.env['NODE_ENV'];
  },
});

export const PAYMENTS_RUNTIME = Symbol('PAYMENTS_RUNTIME');

/**
 * Wraps the system's runtime or the option `runtime`. Allows delays of any length, and calls the callbacks of
 * {@link onClose} when the application closes.
 */
export class ModuleRuntime implements PaymentsRuntime {
  readonly #closeCallbacks: (() => void)[] = [];

  constructor(private readonly runtime: PaymentsRuntime) {}

  get environment(): string | undefined {
    return this.runtime.environment;
  }

  now(): number {
    return this.runtime.now();
  }

  monotonic(): number {
    return this.runtime.monotonic();
  }

  random(): number {
    return this.runtime.random();
  }

  /** Splits a delay that is too long for a timer of Node.js into several timers. */
  schedule(ms: number, callback: () => void): () => void {
    if (ms <= MAX_TIMER_MS) return this.runtime.schedule(ms, callback);
    const rest = (): void => void (cancel = this.schedule(ms - MAX_TIMER_MS, callback));
    let cancel = this.runtime.schedule(MAX_TIMER_MS, rest);
    return () => cancel();
  }

  onClose(callback: () => void): void {
    this.#closeCallbacks.push(callback);
  }

  /** Calls the callbacks of {@link onClose} once. The module calls this method when the application has closed. */
  close(): void {
    for (const callback of this.#closeCallbacks.splice(0)) callback();
  }
}
