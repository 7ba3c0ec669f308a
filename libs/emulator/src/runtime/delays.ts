import type { EmulatorClock } from './emulator-clock.js';

/**
 * Delays that can be ended early: by an abort signal, or all at once by `skipAll()`, so that a test does not have to
 * wait for delayed deliveries.
 */
export class Delays {
  readonly #waiting = new Set<() => void>();
  #skipping = false;

  constructor(private readonly clock: EmulatorClock) {}

  /** Resolves after `ms` milliseconds, or earlier if the signal aborts or delays are skipped. Never rejects. */
  wait(ms: number, signal: AbortSignal): Promise<void> {
    if (this.#skipping || signal.aborted || ms <= 0) return Promise.resolve();
    return new Promise((resolve) => {
      const end = (): void => {
        this.clock.clearTimeout(timer);
        signal.removeEventListener('abort', end);
        this.#waiting.delete(end);
        resolve();
      };
      const timer = this.clock.setTimeout(end, ms);
      signal.addEventListener('abort', end);
      this.#waiting.add(end);
    });
  }

  /** Ends all current delays. Until `stopSkipping()`, every later delay ends at once. */
  skipAll(): void {
    this.#skipping = true;
    for (const end of this.#waiting) end();
  }

  stopSkipping(): void {
    this.#skipping = false;
  }
}
