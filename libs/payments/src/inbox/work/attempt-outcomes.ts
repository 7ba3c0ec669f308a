import type { PaymentsRuntime } from '../../runtime/payments-runtime.js';
import type { Lease } from '../store/inbox-store.js';

/** How an attempt ended, for those who wait for it: the receiver and `PaymentInbox.runDue()`. */
export type AttemptOutcome = 'done' | 'failed';

/** Passes the outcomes of attempts to the watches of their events. */
export class OutcomeWatches {
  /** The watches by company and event. */
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

  /** Abandons all watches, including later ones, because the worker was drained and runs nothing more. */
  abandon(): void {
    this.#abandoned = true;
    for (const watches of this.#watches.values()) for (const watch of watches) watch.abandon();
  }

  /** Reports the outcome of an attempt to the watches of its event. */
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

  /** Adds the outcome of an attempt. */
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
        // A handler that failed and has succeeded in a later attempt does not count.
        resolve(handlers.filter((handler) => !this.#done.includes(handler)));
      };
      this.#onChange();
    });
  }
}

/** The result of `PaymentInbox.runDue()`. */
export interface RunDueResult {
  /** Attempts whose handler succeeded. */
  readonly done: number;
  /** Attempts that failed. Their deliveries run again later, or are dead. */
  readonly failed: number;
  /** Whether `forMs` passed, or the application closed, while a delivery was due or running. */
  readonly more: boolean;
}

interface RunDueCall {
  done: number;
  failed: number;
  readonly end: (more: boolean) => void;
}

/** The calls of `PaymentInbox.runDue()` that have not resolved. */
export class RunDueCalls {
  readonly #calls = new Set<RunDueCall>();

  constructor(private readonly runtime: PaymentsRuntime) {}

  /** Whether there are any. */
  get any(): boolean {
    return this.#calls.size > 0;
  }

  /** Resolves when {@link end} is called, or after `forMs`. */
  add(forMs: number): Promise<RunDueResult> {
    return new Promise((resolve) => {
      const end = (more: boolean): void => {
        cancel();
        this.#calls.delete(call);
        resolve({ done: call.done, failed: call.failed, more });
      };
      const call: RunDueCall = { done: 0, failed: 0, end };
      const cancel = this.runtime.schedule(forMs, () => end(true));
      this.#calls.add(call);
    });
  }

  /** Counts an attempt that has ended, for each call. */
  count(outcome: AttemptOutcome): void {
    for (const call of this.#calls) call[outcome === 'done' ? 'done' : 'failed'] += 1;
  }

  /** Resolves all calls. */
  end(more: boolean): void {
    for (const call of this.#calls) call.end(more);
  }
}
