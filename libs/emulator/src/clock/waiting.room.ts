import type { EmulatorClock } from './emulator.clock.js';

/**
 * Waits that can be cut short: by the end of their run (`signal`), and all together by
 * `hurry()`, so that a test that wants its deliveries now need not wait for their delays.
 */
export class WaitingRoom {
  readonly #waiting = new Set<() => void>();
  #hurried = false;

  constructor(private readonly clock: EmulatorClock) {}

  /** Resolves after `ms`, when the signal aborts, or when everybody is hurried. Never rejects. */
  wait(ms: number, signal: AbortSignal): Promise<void> {
    if (this.#hurried || signal.aborted || ms <= 0) return Promise.resolve();
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

  /** Ends every wait, and those to come, until `rest()`. */
  hurry(): void {
    this.#hurried = true;
    for (const end of this.#waiting) end();
  }

  /** Waits take their time again. */
  rest(): void {
    this.#hurried = false;
  }
}
