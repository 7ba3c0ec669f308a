import { MAX_TIMER_MS } from './payments-runtime.js';
import type { PaymentsRuntime } from './payments-runtime.js';

/**
 * The runtime of one `PaymentsModule`: the system's, or the one that the application gave as the option `runtime`.
 * Delays can have any length, and throttled logs learn when the application closes.
 */
export class ModuleRuntime implements PaymentsRuntime {
  readonly #runtime: PaymentsRuntime;
  readonly #closeCallbacks: (() => void)[] = [];

  constructor(runtime: PaymentsRuntime) {
    this.#runtime = runtime;
  }

  get environment(): string | undefined {
    return this.#runtime.environment;
  }

  now(): number {
    return this.#runtime.now();
  }

  monotonic(): number {
    return this.#runtime.monotonic();
  }

  random(): number {
    return this.#runtime.random();
  }

  /** Splits a delay that is too long for a timer of Node.js into several timers. */
  schedule(ms: number, callback: () => void): () => void {
    if (ms <= MAX_TIMER_MS) return this.#runtime.schedule(ms, callback);
    const rest = (): void => void (cancel = this.schedule(ms - MAX_TIMER_MS, callback));
    let cancel = this.#runtime.schedule(MAX_TIMER_MS, rest);
    return () => cancel();
  }

  /** Registers a callback for {@link close}. */
  onClose(callback: () => void): void {
    this.#closeCallbacks.push(callback);
  }

  /** Called once, when the application has closed. */
  close(): void {
    for (const callback of this.#closeCallbacks.splice(0)) callback();
  }
}
