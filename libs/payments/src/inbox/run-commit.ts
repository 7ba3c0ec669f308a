import { PaymentsError } from '../payments.errors.js';
import type { InboxStore, Lease } from './inbox-store.js';

/** The one commit that a run of a handler may make: the implementation of `context.commit`. */
export class RunCommit {
  #state: 'open' | 'under way' | 'done' | 'closed' = 'open';
  #attempt: Promise<unknown> = Promise.resolve();
  #nextDue = false;

  constructor(
    private readonly store: InboxStore,
    private readonly lease: Lease,
  ) {}

  /** Whether it settled the delivery. */
  get done(): boolean {
    return this.#state === 'done';
  }

  /** Whether another delivery to the handler became due with it. */
  get nextDue(): boolean {
    return this.#nextDue;
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
        // Nothing of it was stored, so the handler may commit again.
        this.#state = 'open';
        throw error;
      },
    );
    // A handler that does not await its commit must not end the process; see close().
    settled.catch(() => {});
    this.#attempt = settled;
    return attempt;
  };

  /** Waits for a commit that the handler did not await, and throws what it failed with. Then it allows no other. */
  async close(): Promise<void> {
    try {
      if (this.#state === 'under way') await this.#attempt;
    } finally {
      if (!this.done) this.#state = 'closed';
    }
  }

  /** Waits for a commit that is under way. Never rejects. */
  async settled(): Promise<void> {
    await this.#attempt.catch(() => {});
  }

  /** Async, so that what a store throws rejects. */
  async #attemptOf<R>(work: (tx: never) => R | Promise<R>): Promise<R> {
    const { result, nextDue } = await this.store.commit(
      this.lease,
      work as (tx: unknown) => R | Promise<R>,
    );
    this.#nextDue = nextDue;
    return result;
  }

  #refusal(): PaymentsError {
    const message =
      this.#state === 'closed'
        ? 'The handler has returned, so its delivery is settled: call context.commit() before that.'
        : 'A run commits once: its delivery is done with the first commit. Do all of the work in one.';
    return new PaymentsError('commit_refused', message);
  }
}
