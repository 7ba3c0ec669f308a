import type { WaitingRoom } from '../clock/waiting.room.js';
import { reorder } from '../faults/fault.dice.js';
import type { RandomStream } from '../random/random.source.js';

/** Says that the delivery whose turn it was has left. */
export type LeaveTurn = () => void;

type Held = () => Promise<void>;

/**
 * Holds a company's deliveries until enough of them wait, then lets them go one after the other in
 * another order: one at a time, because deliveries sent together arrive in whatever order they
 * like, and no run could be repeated.
 */
export class ReorderWindow {
  #held: Held[] = [];

  constructor(
    private readonly room: WaitingRoom,
    private readonly dice: () => RandomStream,
  ) {}

  /** Resolves when it is this delivery's turn. `maxWaitMs` counts from the first one held. */
  enter(window: number, maxWaitMs: number, signal: AbortSignal): Promise<LeaveTurn> {
    return new Promise((turn) => {
      const held = this.#held;
      held.push(() => new Promise<void>((leave) => turn(leave)));
      if (held.length >= window) {
        this.#release(held);
      } else if (held.length === 1) {
        void this.room.wait(maxWaitMs, signal).then(() => this.#release(held));
      }
    });
  }

  #release(held: Held[]): void {
    if (this.#held !== held) return;
    this.#held = [];
    void this.#letGo(reorder(held, this.dice()));
  }

  async #letGo(held: readonly Held[]): Promise<void> {
    for (const go of held) await go();
  }
}
