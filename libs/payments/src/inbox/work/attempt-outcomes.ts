import type { Lease } from '../store/inbox-store.js';

/** How an attempt ended, for the receiver and for `PaymentInbox.runDue()`. */
export type AttemptOutcome = 'completed' | 'failed';

/** Passes the outcomes of attempts to the watches of their events. */
export class OutcomeWatches {
  /** The watches by company and event. */
  readonly #watches = new Map<string, OutcomeWatch[]>();
  #abandoned = false;

  /** Collects the outcomes of an event's attempts until {@link OutcomeWatch.end} is called. */
  watch(company: string, id: string): OutcomeWatch {
    const key = `${company}\n${id}`;
    const watch = new OutcomeWatch(() => this.#remove(key, watch));
    const others = this.#watches.get(key);
    if (others === undefined) this.#watches.set(key, [watch]);
    else others.push(watch);
    if (this.#abandoned) watch.abandon();
    return watch;
  }

  /** Abandons all watches, including later ones, because the worker was drained and runs nothing more. */
  abandon(): void {
    this.#abandoned = true;
    for (const watches of this.#watches.values()) for (const watch of watches) watch.abandon();
  }

  /** Reports the outcome of an attempt to the watches of its event. */
  report({ company, id, handler }: Lease, outcome: AttemptOutcome): void {
    for (const watch of this.#watches.get(`${company}\n${id}`) ?? []) watch.add(handler, outcome);
  }

  #remove(key: string, watch: OutcomeWatch): void {
    const watches = this.#watches.get(key);
    const index = watches?.indexOf(watch) ?? -1;
    if (index === -1) return;
    if (watches!.length === 1) this.#watches.delete(key);
    else watches!.splice(index, 1);
  }
}

/** The outcomes of one event's attempts since the watch started. */
export class OutcomeWatch {
  readonly #completed: string[] = [];
  readonly #failed: string[] = [];
  #onChange: () => void = () => {};
  #abandoned = false;

  constructor(
    /** Ends the watch. Idempotent. */
    readonly end: () => void,
  ) {}

  /** Adds the outcome of an attempt. */
  add(handler: string, outcome: AttemptOutcome): void {
    (outcome === 'completed' ? this.#completed : this.#failed).push(handler);
    this.#onChange();
  }

  /** Makes {@link failures} resolve at once. A handler without an outcome counts as failed. */
  abandon(): void {
    this.#abandoned = true;
    this.#onChange();
  }

  /** Whether an attempt of that handler has ended since the watch started. */
  hasEnded(handler: string): boolean {
    return this.#completed.includes(handler) || this.#failed.includes(handler);
  }

  /** Resolves with the handlers that failed, once an attempt of each of `handlers` has ended. */
  failures(handlers: readonly string[]): Promise<string[]> {
    return new Promise((resolve) => {
      this.#onChange = () => {
        if (!this.#abandoned && !handlers.every((handler) => this.hasEnded(handler))) return;
        // A handler that failed and has succeeded in a later attempt does not count.
        resolve(handlers.filter((handler) => !this.#completed.includes(handler)));
      };
      this.#onChange();
    });
  }
}
