import type { EmulatorClock } from '../runtime/emulator-clock.js';

/** Timers of transactions that complete by themselves at a later time. */
export class LaterCompletions {
  readonly #timers = new Map<string, unknown>();

  constructor(
    private readonly clock: EmulatorClock,
    private readonly complete: (transactionId: string) => void,
  ) {}

  /**
   * Completes a transaction in `delayMs` milliseconds. If a completion of this transaction is already scheduled, the new
   * time replaces it.
   */
  schedule(transactionId: string, delayMs: number): void {
    this.cancel(transactionId);
    const timer = this.clock.setTimeout(() => {
      this.#timers.delete(transactionId);
      this.complete(transactionId);
    }, delayMs);
    this.#timers.set(transactionId, timer);
  }

  cancel(transactionId: string): void {
    this.clock.clearTimeout(this.#timers.get(transactionId));
    this.#timers.delete(transactionId);
  }

  clear(): void {
    for (const timer of this.#timers.values()) this.clock.clearTimeout(timer);
    this.#timers.clear();
  }
}
