import type { PaymentsRuntime } from '../../payments.runtime.js';
import { PostgresInboxError } from './database.failure.js';

/**
 * Lets a number of transactions in at a time and the others wait, for a bounded time. Without it, handlers
 * that commit could hold every connection of the pool, and a delivery from the service find none.
 */
export class CommitGate {
  readonly #waiting = new Set<() => void>();
  #inside = 0;

  constructor(
    private readonly places: number,
    private readonly waitMs: number,
    private readonly runtime: PaymentsRuntime,
  ) {}

  /** Resolves with how to leave again. */
  async enter(): Promise<() => void> {
    if (this.#inside < this.places) this.#inside += 1;
    else await this.#wait();
    return () => this.#leave();
  }

  /** A place is handed over, so that nobody slips in between. */
  #leave(): void {
    const [next] = this.#waiting;
    if (next) next();
    else this.#inside -= 1;
  }

  #wait(): Promise<void> {
    return new Promise((resolve, reject) => {
      const enter = (): void => {
        this.#waiting.delete(enter);
        cancel();
        resolve();
      };
      const cancel = this.runtime.schedule(this.waitMs, () => {
        this.#waiting.delete(enter);
        reject(
          new PostgresInboxError(
            `No connection was free for context.commit within ${this.waitMs} ms: ${this.places} others were at it. ` +
              'Keep their work short, or raise "poolSize".',
            null,
          ),
        );
      });
      this.#waiting.add(enter);
    });
  }
}
