import type { PaymentsRuntime } from '../../runtime/payments-runtime.js';
import { PostgresInboxError } from './connection/database-failure.js';

/**
 * Limits the number of `context.commit` at a time; the others wait, for a bounded time. Without it, handlers that commit
 * could hold every connection of the pool, and receives would find none.
 */
export class CommitSemaphore {
  readonly #waiting = new Set<() => void>();
  #inside = 0;

  constructor(
    private readonly places: number,
    private readonly waitMs: number,
    private readonly runtime: Pick<PaymentsRuntime, 'schedule'>,
  ) {}

  /** Resolves with the function that leaves it. */
  async enter(): Promise<() => void> {
    if (this.#inside < this.places) this.#inside += 1;
    else await this.#wait();
    return () => this.#leave();
  }

  /** Gives the place to the longest waiting, so that nobody gets it before. */
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
            `No connection was free for context.commit within ${this.waitMs} ms: ${this.places} others use them. ` +
              'Keep their work short, or raise "poolSize".',
            null,
          ),
        );
      });
      this.#waiting.add(enter);
    });
  }
}
