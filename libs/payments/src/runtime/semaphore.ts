import type { PaymentsRuntime } from './payments-runtime.js';

/** Limits how many tasks run at the same time. Other tasks wait in the order of their calls, for a limited time. */
export class Semaphore {
  readonly #waiting = new Set<() => void>();
  #running = 0;

  /**
   * @param permits the most tasks at the same time
   * @param maxWaitMs the longest a task waits for a permit, in milliseconds
   * @param timeoutError creates the error of a task that waited too long
   */
  constructor(
    private readonly permits: number,
    private readonly maxWaitMs: number,
    private readonly timeoutError: () => Error,
    private readonly runtime: Pick<PaymentsRuntime, 'schedule'>,
  ) {}

  /** Takes a permit. Resolves to the function that returns the permit; call that function once. */
  async acquire(): Promise<() => void> {
    if (this.#running < this.permits) this.#running += 1;
    else await this.#wait();
    return () => this.#release();
  }

  /** Passes the permit to the task that has waited longest, before any new task can take it. */
  #release(): void {
    const [next] = this.#waiting;
    if (next) next();
    else this.#running -= 1;
  }

  #wait(): Promise<void> {
    return new Promise((resolve, reject) => {
      const start = (): void => {
        this.#waiting.delete(start);
        cancel();
        resolve();
      };
      const cancel = this.runtime.schedule(this.maxWaitMs, () => {
        this.#waiting.delete(start);
        reject(this.timeoutError());
      });
      this.#waiting.add(start);
    });
  }
}
