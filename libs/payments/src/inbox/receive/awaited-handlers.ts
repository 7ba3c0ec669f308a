import type { Lease } from '../store/inbox-store.js';

/** How one attempt of a delivery ended. */
export type AttemptOutcome = 'succeeded' | 'failed';

/**
 * Reports how each attempt of an event's deliveries ended, to those who wait for it: if the inbox is not durable, the
 * sender is answered only then.
 */
export class OutcomeWatches {
  /** By company and event. */
  readonly #watches = new Map<string, OutcomeWatch[]>();
  #abandoned = false;

  /** Collects the outcomes of an event's attempts, until {@link OutcomeWatch.end}. */
  watch(company: string, id: string): OutcomeWatch {
    const key = `${company}\n${id}`;
    const watch = new OutcomeWatch(() => this.#end(key, watch));
    const others = this.#watches.get(key);
    if (others === undefined) this.#watches.set(key, [watch]);
    else others.push(watch);
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

  #end(key: string, watch: OutcomeWatch): void {
    const watches = this.#watches.get(key);
    const place = watches?.indexOf(watch) ?? -1;
    if (place === -1) return;
    if (watches!.length === 1) this.#watches.delete(key);
    else watches!.splice(place, 1);
  }
}

/** The outcomes of one event's attempts so far. */
export class OutcomeWatch {
  readonly #succeeded: string[] = [];
  readonly #failed: string[] = [];
  #onNote: () => void = () => {};
  #abandoned = false;

  constructor(
    /** Ends the watch. */
    readonly end: () => void,
  ) {}

  note(handler: string, outcome: AttemptOutcome): void {
    (outcome === 'succeeded' ? this.#succeeded : this.#failed).push(handler);
    this.#onNote();
  }

  /** Ends the wait: what has no outcome yet counts as failed. */
  abandon(): void {
    this.#abandoned = true;
    this.#onNote();
  }

  /** Whether an attempt of that handler has ended since the watch began. */
  has(handler: string): boolean {
    return this.#succeeded.includes(handler) || this.#failed.includes(handler);
  }

  /** Resolves with the names of those that failed, once an attempt of each of the handlers has ended. */
  failures(handlers: readonly string[]): Promise<string[]> {
    return new Promise((resolve) => {
      this.#onNote = () => {
        if (!this.#abandoned && !handlers.every((handler) => this.has(handler))) return;
        // One that failed and was tried again since may have succeeded.
        resolve(handlers.filter((handler) => !this.#succeeded.includes(handler)));
      };
      this.#onNote();
    });
  }
}
