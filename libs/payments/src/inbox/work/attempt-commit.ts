import { PaymentsError } from '../../errors/payments-error.js';
import type { InboxStore, Lease } from '../store/inbox-store.js';

/** The promise that `context.commit` returns. It records whether the handler awaits it. */
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

  /** Prevents that Node reports a rejection of this promise as unhandled. */
  ignoreRejection(): void {
    super.then(undefined, () => {});
  }
}

/** Implements `context.commit` of one attempt, which may commit once. */
export class AttemptCommit {
  #state: 'open' | 'under way' | 'done' | 'closed' = 'open';
  /** The promise that the last call of {@link commit} returned. */
  #promise: CommitPromise<unknown> | null = null;
  #nextDue = false;

  constructor(
    private readonly store: InboxStore,
    private readonly lease: Lease,
  ) {}

  /** Whether a commit succeeded, so that the delivery is settled. */
  get done(): boolean {
    return this.#state === 'done';
  }

  /** See {@link SettleResult.nextDue}. */
  get nextDue(): boolean {
    return this.#nextDue;
  }

  /** See `PaymentEventContext.commit`. */
  readonly commit = <R>(work: (tx: never) => R | Promise<R>): Promise<R> => {
    if (this.#state !== 'open') return Promise.reject(this.#rejection());
    this.#state = 'under way';
    const committed = this.#commit(work).then(
      (result) => {
        this.#state = 'done';
        return result;
      },
      (error: unknown) => {
        // Usually nothing of the work was stored, so the handler may commit again. If it was, because only the response was
        // lost, the delivery is done, and the store rejects the next commit with `lease_lost`.
        this.#state = 'open';
        throw error;
      },
    );
    const promise = new CommitPromise<R>((resolve, reject) => void committed.then(resolve, reject));
    // Without this, a failed commit that the handler does not await would end the process. close() reports the failure.
    promise.ignoreRejection();
    this.#promise = promise;
    return promise;
  };

  /**
   * Rejects all further commits. Waits for a commit that is under way, and throws its error. Also throws the error of a
   * failed commit that the handler did not await: otherwise the attempt would succeed without the effects of the
   * commit.
   */
  async close(): Promise<void> {
    const promise = this.#promise;
    try {
      if (promise && (this.#state === 'under way' || !promise.awaited)) await promise;
    } finally {
      if (!this.done) this.#state = 'closed';
    }
  }

  /** Waits for a commit that is under way. Never rejects. */
  async ended(): Promise<void> {
    await this.#promise?.catch(() => {});
  }

  /** Async, so that an exception of the store becomes a rejection. */
  async #commit<R>(work: (tx: never) => R | Promise<R>): Promise<R> {
    const { result, nextDue } = await this.store.commit(
      this.lease,
      work as (tx: unknown) => R | Promise<R>,
    );
    this.#nextDue = nextDue;
    return result;
  }

  #rejection(): PaymentsError {
    const message =
      this.#state === 'closed'
        ? 'The handler has returned, so its delivery is settled: call context.commit() before that.'
        : 'An attempt commits once: the first commit settles its delivery. Do all of the work in one commit.';
    return new PaymentsError('commit_rejected', message);
  }
}
