import { LogLine } from '../../errors/log-line.js';
import {
  describeError,
  framesOf,
  isUnrecoverable,
  PaymentsError,
} from '../../errors/payments-error.js';
import { OtherVersionError } from '../../events/event-dispatcher.js';
import { nextRetryMs } from '../../events/retry-schedule.js';
import type { RetrySchedule } from '../../events/retry-schedule.js';
import { Backoff, STORE_BACKOFF } from '../../runtime/backoff.js';
import type { ObservedOutcome } from '../../telemetry/payments-observer.js';
import type { ClaimedDelivery, InboxStore, Lease, SettleResult } from '../store/inbox-store.js';
import type { AttemptServices } from './attempt-context.js';

/**
 * How long the slot of a delivery that needs another version of its handler stays taken, in milliseconds. A process
 * with that version can claim the delivery meanwhile.
 */
const OTHER_VERSION_MS = 1000;

/** An attempt whose handler has ended or has exceeded its time limit. */
export interface EndedAttempt {
  readonly delivery: ClaimedDelivery;
  /** The delivery, for messages. */
  readonly name: string;
  readonly retry: RetrySchedule;
  /** Whether the application closes and has aborted the handler's signal. */
  readonly closing: boolean;
  readonly services: AttemptServices;
  /** Resolves after `ms` milliseconds, or as soon as the application aborts the handler's signal because it closes. */
  wait(ms: number): Promise<void>;
}

/** A value that a handler threw, wrapped in an object because a handler can throw `undefined`. */
export interface HandlerFailure {
  readonly thrown: unknown;
}

/** How to settle a delivery after an attempt. */
export interface SettleAction {
  /** Writes the outcome to the store. */
  readonly write: (store: InboxStore, delivery: ClaimedDelivery) => Promise<SettleResult>;
  /** The outcome, for observers, if it could be written. */
  readonly outcome: ObservedOutcome;
  /** In how many milliseconds the delivery is due again; `null` if the worker schedules no retry. */
  readonly retryInMs: number | null;
  /** How long the slot stays taken after the delivery is settled, in milliseconds. */
  readonly keepSlotMs: number;
  /** Logs the outcome. Call it after the outcome was stored. */
  readonly log: () => void;
}

const NO_RETRY = { retryInMs: null, keepSlotMs: 0 };
const COMPLETE: SettleAction = {
  ...NO_RETRY,
  outcome: 'completed',
  write: (store, delivery) => store.complete(delivery),
  log: () => {},
};
const RELEASE: Pick<SettleAction, 'outcome' | 'write' | 'retryInMs' | 'keepSlotMs'> = {
  ...NO_RETRY,
  outcome: 'released',
  write: (store, delivery) => store.release(delivery),
};

/** How to settle a delivery whose handler failed or, with `null`, succeeded. */
export function settleActionFor(
  failure: HandlerFailure | null,
  { delivery, name, retry, closing, services }: EndedAttempt,
): SettleAction {
  if (failure === null) return COMPLETE;
  const { thrown } = failure;
  const error = describeError(thrown);
  const failed = `Delivery ${name} failed (attempt ${delivery.attempt} of ${retry.attempts})`;
  if (closing) {
    const line = `${failed} as the application closes, so the attempt is not counted. ${error}`;
    return { ...RELEASE, log: () => services.logger.warn(new LogLine(line, delivery)) };
  }
  const { handler } = delivery;
  if (OtherVersionError.is(thrown) && services.catalog.takesElsewhere(handler, thrown.eventType)) {
    const line = `Delivery ${name} is left to another version of the handler, so the attempt is not counted. ${error}`;
    const log = () => services.throttled.warn(`version of ${handler}`, new LogLine(line, delivery));
    return { ...RELEASE, keepSlotMs: OTHER_VERSION_MS, log };
  }
  const retryInMs = isUnrecoverable(thrown)
    ? null
    : nextRetryMs(retry, delivery.attempt, services.runtime.random());
  return {
    outcome: retryInMs === null ? 'dead' : 'failed',
    write: (store) => store.fail(delivery, { error, retryInMs }),
    retryInMs,
    keepSlotMs: 0,
    log: () => {
      if (retryInMs === null) {
        const line = `${failed} and is dead; it is kept and can be redriven.`;
        services.logger.error(new LogLine(`${line} ${describeWithStack(thrown)}`, delivery));
        return;
      }
      // The stack is the same for each attempt: log it for the first and the last.
      const why = delivery.attempt === 1 ? describeWithStack(thrown) : error;
      const line = `${failed}; next attempt in ${retryInMs} ms. ${why}`;
      services.logger.warn(new LogLine(line, delivery));
    },
  };
}

/**
 * Settles the delivery. While the store is down, it retries until the store responds. If the application closes
 * meanwhile, it tries once more. Resolves with `null` if the outcome could not be stored.
 */
export async function settle(
  { write }: SettleAction,
  attempt: EndedAttempt,
): Promise<SettleResult | null> {
  const { delivery } = attempt;
  const { store, runtime, logger, throttled } = attempt.services;
  let backoff: Backoff | null = null;
  for (let last = attempt.closing; ; last = attempt.closing) {
    try {
      return await write(store, delivery);
    } catch (error) {
      const line = `The result of delivery ${attempt.name} could not be stored: ${describeError(error)}`;
      if (last) {
        const closing = `${line}. The application closes, so the delivery runs again.`;
        logger.error(new LogLine(closing, delivery));
        return null;
      }
      const retries = `${line}. The worker retries until it succeeds.`;
      throttled.warn('settle', new LogLine(retries, delivery));
      backoff ??= new Backoff(runtime, STORE_BACKOFF);
      await attempt.wait(backoff.nextMs());
    }
  }
}

/** A thrown value, for the log, with the first lines of its stack. */
export function describeWithStack(thrown: unknown): string {
  return `${describeError(thrown)}${framesOf(thrown)}`;
}

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
        // Nothing of the work was stored, so the handler may commit again.
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
