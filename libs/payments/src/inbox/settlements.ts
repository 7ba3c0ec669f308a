import type { Lease } from './store.contract.js';

/** How one attempt of a delivery ended. */
export type AttemptOutcome = 'succeeded' | 'failed';

/**
 * Tells those who wait for an event's handlers how each attempt ended. What makes the answer to the sender
 * wait for them where the inbox is not durable.
 */
export class Settlements {
  readonly #watches = new Map<string, Set<SettlementWatch>>();
  #abandoned = false;

  /** Begins to collect the outcomes of an event's attempts, until {@link SettlementWatch.end}. */
  watch(company: string, id: string): SettlementWatch {
    const key = `${company}\n${id}`;
    const watches = this.#watches.get(key) ?? new Set();
    this.#watches.set(key, watches);
    const watch = new SettlementWatch(() => {
      watches.delete(watch);
      if (watches.size === 0 && this.#watches.get(key) === watches) this.#watches.delete(key);
    });
    watches.add(watch);
    if (this.#abandoned) watch.abandon();
    return watch;
  }

  /** Ends every wait, and those to come: what has no outcome yet counts as failed, since nothing runs any more. */
  abandon(): void {
    this.#abandoned = true;
    for (const watches of this.#watches.values()) for (const watch of watches) watch.abandon();
  }

  /** Reports how an attempt ended. */
  report({ company, id, handler }: Lease, outcome: AttemptOutcome): void {
    for (const watch of this.#watches.get(`${company}\n${id}`) ?? []) watch.note(handler, outcome);
  }
}

/** The outcomes of one event's attempts, as they come in. */
export class SettlementWatch {
  readonly #outcomes = new Map<string, AttemptOutcome>();
  #onNote: () => void = () => {};
  #abandoned = false;

  constructor(
    /** Ends the watch. */
    readonly end: () => void,
  ) {}

  note(handler: string, outcome: AttemptOutcome): void {
    this.#outcomes.set(handler, outcome);
    this.#onNote();
  }

  /** Ends the wait: what has no outcome yet counts as failed. */
  abandon(): void {
    this.#abandoned = true;
    this.#onNote();
  }

  /** Whether an attempt of that handler has ended since the watch began. */
  has(handler: string): boolean {
    return this.#outcomes.has(handler);
  }

  /** Resolves with the names of those that failed, once an attempt of each of the handlers has ended. */
  async failures(handlers: readonly string[]): Promise<string[]> {
    await new Promise<void>((resolve) => {
      this.#onNote = () => {
        const ended = handlers.every((handler) => this.#outcomes.has(handler));
        if (ended || this.#abandoned) resolve();
      };
      this.#onNote();
    });
    return handlers.filter((handler) => this.#outcomes.get(handler) !== 'succeeded');
  }
}
