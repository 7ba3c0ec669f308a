import type { PaymentsRuntime } from '../../runtime/payments-runtime.js';
import type { AttemptOutcome } from '../receive/awaited-handlers.js';

/** What `PaymentInbox.runDue()` did. */
export interface RunDueResult {
  /** Deliveries whose handler succeeded. */
  readonly done: number;
  /** Attempts that failed: their deliveries run again later, or are dead. */
  readonly failed: number;
  /** Whether the time was up, or the application closed, before nothing was due or running. */
  readonly more: boolean;
}

interface PendingRun {
  done: number;
  failed: number;
  readonly end: (more: boolean) => void;
}

/** The calls of `PaymentInbox.runDue()` that are under way. */
export class DueRuns {
  readonly #runs = new Set<PendingRun>();

  constructor(private readonly runtime: PaymentsRuntime) {}

  /** Whether there are any. */
  get any(): boolean {
    return this.#runs.size > 0;
  }

  /** Resolves when {@link end} is called, or after `forMs`. */
  add(forMs: number): Promise<RunDueResult> {
    return new Promise((resolve) => {
      const end = (more: boolean): void => {
        cancel();
        this.#runs.delete(run);
        resolve({ done: run.done, failed: run.failed, more });
      };
      const run: PendingRun = { done: 0, failed: 0, end };
      const cancel = this.runtime.schedule(forMs, () => end(true));
      this.#runs.add(run);
    });
  }

  /** Counts an attempt that ended. */
  note(outcome: AttemptOutcome): void {
    for (const run of this.#runs) run[outcome === 'succeeded' ? 'done' : 'failed'] += 1;
  }

  /** Resolves all of them. */
  end(more: boolean): void {
    for (const run of this.#runs) run.end(more);
  }
}
