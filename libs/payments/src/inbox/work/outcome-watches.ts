import type { Lease } from '../store/inbox-store.js';
import type { AttemptOutcome } from './attempt.js';

/** Passes the outcome of each attempt to every {@link OutcomeWatch} of its event. */
export class OutcomeWatches {
  readonly #watches = new Map<string, Set<OutcomeWatch>>();
  #abandoned = false;

  /** Collects the outcomes of an event's attempts until {@link OutcomeWatch.end} is called. */
  watch(company: string, id: string): OutcomeWatch {
    const key = `${company}\n${id}`;
    const watches = this.#watches.get(key) ?? new Set();
    this.#watches.set(key, watches);
    const watch = new OutcomeWatch(() => {
      watches.delete(watch);
      if (watches.size === 0 && this.#watches.get(key) === watches) this.#watches.delete(key);
    });
    watches.add(watch);
    if (this.#abandoned) watch.abandon();
    return watch;
  }

  /** Abandons all watches, including later watches, because a drained worker runs no more attempts. */
  abandon(): void {
    this.#abandoned = true;
    for (const watches of this.#watches.values()) for (const watch of watches) watch.abandon();
  }

  report({ company, id, handler }: Lease, outcome: AttemptOutcome): void {
    if (this.#watches.size === 0) return;
    for (const watch of this.#watches.get(`${company}\n${id}`) ?? []) watch.add(handler, outcome);
  }
}

/** The outcomes of one event's attempts since the watch started. */
export class OutcomeWatch {
  readonly #done: string[] = [];
  readonly #failed: string[] = [];
  #onChange: () => void = () => {};
  #abandoned = false;

  constructor(
    /** Ends the watch. Idempotent. */
    readonly end: () => void,
  ) {}

  add(handler: string, outcome: AttemptOutcome): void {
    (outcome === 'done' ? this.#done : this.#failed).push(handler);
    this.#onChange();
  }

  /** Makes {@link failures} resolve at once. A handler without an outcome counts as failed. */
  abandon(): void {
    this.#abandoned = true;
    this.#onChange();
  }

  /** Whether an attempt of that handler has ended since the watch started. */
  hasEnded(handler: string): boolean {
    return this.#done.includes(handler) || this.#failed.includes(handler);
  }

  /** Resolves with the handlers that failed, once an attempt of each of `handlers` has ended. */
  failures(handlers: readonly string[]): Promise<string[]> {
    return new Promise((resolve) => {
      this.#onChange = () => {
        if (!this.#abandoned && !handlers.every((handler) => this.hasEnded(handler))) return;
        // A handler that failed and then succeeded in a later attempt does not count as failed.
        resolve(handlers.filter((handler) => !this.#done.includes(handler)));
      };
      this.#onChange();
    });
  }
}
