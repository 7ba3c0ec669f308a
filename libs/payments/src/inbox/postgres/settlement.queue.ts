import { isAboutValues } from './database.failure.js';

/** What one statement settles at the most. */
const MAX_GROUP = 500;

interface Waiting<T> {
  readonly item: T;
  readonly resolve: (settled: boolean) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Group commit, of settlements: those of one turn of the event loop go together, at once where nothing is
 * under way, and otherwise with all that come until it has ended. So a wait for the disk is shared by them.
 */
export class SettlementQueue<T> {
  #waiting: Waiting<T>[] = [];
  #state: 'idle' | 'settling' = 'idle';

  constructor(
    /** Resolves with the places of those it has settled, having waited for none that others are at. */
    private readonly together: (items: readonly T[]) => Promise<ReadonlySet<number>>,
    /** Asked for each of the rest; it may wait, and no other waits for it. */
    private readonly alone: (item: T) => Promise<boolean>,
  ) {}

  /** Resolves, once it is committed, with whether it was settled. */
  settle(item: T): Promise<boolean> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ item, resolve, reject });
      if (this.#state === 'settling') return;
      this.#state = 'settling';
      setImmediate(() => void this.#run());
    });
  }

  /** Never rejects. */
  async #run(): Promise<void> {
    while (this.#waiting.length > 0) await this.#settle(this.#waiting.splice(0, MAX_GROUP));
    this.#state = 'idle';
  }

  async #settle(group: readonly Waiting<T>[]): Promise<void> {
    let settled: ReadonlySet<number> = new Set();
    try {
      settled = await this.together(group.map(({ item }) => item));
    } catch (error) {
      if (!isAboutValues(error)) {
        for (const { reject } of group) reject(error);
        return;
      }
      // One of them cannot be stored: that must not be the others' fault.
    }
    for (const [place, { item, resolve, reject }] of group.entries()) {
      if (settled.has(place)) resolve(true);
      else this.alone(item).then(resolve, reject);
    }
  }
}
