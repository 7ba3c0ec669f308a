import type { PaymentEventContext } from '../../events/payment-event.js';
import { PaymentsError } from '../../errors/payments-error.js';
import type { ClaimedDelivery, InboxStore, Lease } from '../store/inbox-store.js';

/** The context of one run of a handler. What most handlers do not use is created on first use. */
export class AttemptContext implements PaymentEventContext {
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

/** What `context.commit` returns. It remembers whether the handler awaits it. */
class CommitPromise<R> extends Promise<R> {
  #awaited = false;

  get awaited(): boolean {
    return this.#awaited;
  }

  // oxlint-disable-next-line unicorn/no-thenable -- `await` calls it
  override then<A = R, B = never>(
    onResult?: ((result: R) => A | PromiseLike<A>) | null,
    onError?: ((error: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    this.#awaited = true;
    return super.then(onResult, onError);
  }

  /** Its rejection is not an unhandled one. */
  ignoreRejection(): void {
    super.then(undefined, () => {});
  }
}

/** The one commit that a run of a handler may make: the implementation of `context.commit`. */
export class AttemptCommit {
  #state: 'open' | 'under way' | 'done' | 'closed' = 'open';
  /** Of the last call. */
  #answer: CommitPromise<unknown> | null = null;
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
    const attempt = this.#attemptOf(work).then(
      (result) => {
        this.#state = 'done';
        return result;
      },
      (error: unknown) => {
        // Nothing of it was stored, so the handler may commit again.
        this.#state = 'open';
        throw error;
      },
    );
    const answer = new CommitPromise<R>((resolve, reject) => void attempt.then(resolve, reject));
    // A handler that does not await its commit must not end the process; see close().
    answer.ignoreRejection();
    this.#answer = answer;
    return answer;
  };

  /**
   * Allows no further commit. If one is under way, waits for it first, and throws what it failed with: so does one that
   * failed and that the handler did not await, or its effects would be lost unnoticed.
   */
  async close(): Promise<void> {
    const answer = this.#answer;
    try {
      if (answer && (this.#state === 'under way' || !answer.awaited)) await answer;
    } finally {
      if (!this.done) this.#state = 'closed';
    }
  }

  /** Waits for a commit that is under way. Never rejects. */
  async settled(): Promise<void> {
    await this.#answer?.catch(() => {});
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
