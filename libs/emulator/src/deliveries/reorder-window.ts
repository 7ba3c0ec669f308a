import type { Delays } from '../runtime/delays.js';
import type { RandomStream } from '../runtime/random-source.js';

/** A function that ends the turn of a delivery, so that the turn of the next delivery starts. */
export type EndTurn = () => void;

type StartTurn = () => Promise<void>;

/**
 * Delays a company's deliveries until enough of them are waiting, then sends them in another order, one at a time.
 * Deliveries that are sent concurrently could arrive in a different order each time, even with the same seed.
 */
export class ReorderWindow {
  #waiting: StartTurn[] = [];

  constructor(
    private readonly delays: Delays,
    private readonly nextStream: () => RandomStream,
  ) {}

  /**
   * Waits for the turn of a delivery, at most `maxWaitMs` milliseconds after the first delivery of the window started
   * to wait. Resolves when the turn starts.
   */
  enter(window: number, maxWaitMs: number, signal: AbortSignal): Promise<EndTurn> {
    return new Promise((start) => {
      const waiting = this.#waiting;
      waiting.push(() => new Promise<void>((endTurn) => start(endTurn)));
      if (waiting.length >= window) {
        this.#release(waiting);
      } else if (waiting.length === 1) {
        void this.delays.wait(maxWaitMs, signal).then(() => this.#release(waiting));
      }
    });
  }

  #release(waiting: StartTurn[]): void {
    if (this.#waiting !== waiting) return;
    this.#waiting = [];
    void this.#runInTurn(reorder(waiting, this.nextStream()));
  }

  async #runInTurn(waiting: readonly StartTurn[]): Promise<void> {
    for (const startTurn of waiting) await startTurn();
  }
}

/** Returns a copy of `items` in another order, or in the same order if there are fewer than two items. */
export function reorder<T>(items: readonly T[], random: RandomStream): T[] {
  const shuffled = [...items];
  for (let index = shuffled.length - 1; index > 0; index--) {
    const other = random.int(0, index);
    [shuffled[index], shuffled[other]] = [shuffled[other] as T, shuffled[index] as T];
  }
  // A shuffle can return the original order; rotating by one always changes it.
  if (shuffled.every((item, index) => item === items[index]))
    shuffled.push(...shuffled.splice(0, 1));
  return shuffled;
}
