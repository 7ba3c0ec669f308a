import { PaymentsError } from '../payments.errors.js';
import type { InboxStore, Lease } from './inbox-store.js';

/** The one commit that a run of a handler may make: what stands behind `context.commit`. */
export class RunCommit {
  #state: 'open' | 'under way' | 'done' | 'closed' = 'open';
  #attempt: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly store: InboxStore,
    private readonly lease: Lease,
  ) {}

  /** Whether the delivery is settled by it. */
  get done(): boolean {
    return this.#state === 'done';
  }

  /** See `PaymentEventContext.commit`. */
  readonly commit = <R>(work: (tx: never) => R | Promise<R>): Promise<R> => {
    if (this.#state !== 'open') return Promise.reject(this.#refusal());
    this.#state = 'under way';
    const attempt = this.#attemptOf(work);
    const settled = attempt.then(
      () => {
        this.#state = 'done';
      },
      (error: unknown) => {
        // It left nothing behind, so the handler may mend what failed and commit again.
        this.#state = 'open';
        throw error;
      },
    );
    // A handler that does not await its commit must not end the process; see close().
    settled.catch(() => {});
    this.#attempt = settled;
    return attempt;
  };

  /** Waits for a commit that the handler did not await, and throws what it failed with; then takes no more. */
  async close(): Promise<void> {
    try {
      if (this.#state === 'under way') await this.#attempt;
    } finally {
      if (!this.done) this.#state = 'closed';
    }
  }

  /** Async, so that what a store throws rejects. */
  async #attemptOf<R>(work: (tx: never) => R | Promise<R>): Promise<R> {
    return this.store.commit(this.lease, work as (tx: unknown) => R | Promise<R>);
  }

  #refusal(): PaymentsError {
    const message =
      this.#state === 'closed'
        ? 'The handler has returned, so its delivery is settled: call context.commit() before that.'
        : 'A run commits once: its delivery is done with the first commit. Do all of the work in one.';
    return new PaymentsError('commit_refused', message);
  }
}
