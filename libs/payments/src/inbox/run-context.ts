import type { PaymentEventContext } from '../events/payment-event.js';
import { PaymentsError } from '../errors/payments-error.js';
import type { ClaimedDelivery, InboxStore, Lease } from './inbox-store.js';

/** The context of one run of a handler. What most handlers do not use is created on first use. */
export class RunContext implements PaymentEventContext {
  readonly company: string;
  readonly handler: string;
  readonly attempt: number;
  readonly receivedAt: Date;
  readonly newerHandled: boolean;
  readonly #body: Buffer;
  readonly #abort: AbortController;
  #copy: Buffer | null = null;

  constructor(
    { company, handler, attempt, receivedAt, newerHandled }: ClaimedDelivery,
    body: Buffer,
    abort: AbortController,
    readonly commit: PaymentEventContext['commit'],
  ) {
    this.company = company;
    this.handler = handler;
    this.attempt = attempt;
    this.receivedAt = receivedAt;
    this.newerHandled = newerHandled;
    this.#body = body;
    this.#abort = abort;
    Object.freeze(this);
  }

  get raw(): Buffer {
    // A private field can be set although the object is frozen.
    return (this.#copy ??= Buffer.from(this.#body));
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }
}

/** The one commit that a run of a handler may make: the implementation of `context.commit`. */
export class RunCommit {
  #state: 'open' | 'under way' | 'done' | 'closed' = 'open';
  /** Settles with the last attempt to commit. */
  #attempt: Promise<unknown> | null = null;
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

  /** Allows no further commit. If one is under way, waits for it first, and throws what it failed with. */
  async close(): Promise<void> {
    try {
      if (this.#state === 'under way') await this.#attempt;
    } finally {
      if (!this.done) this.#state = 'closed';
    }
  }

  /** Waits for a commit that is under way. Never rejects. */
  async settled(): Promise<void> {
    await this.#attempt?.catch(() => {});
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
