import type { ModuleLogger, ThrottledLog } from '../../errors/module-log.js';
import {
  describeError,
  framesOf,
  isUnrecoverable,
  ownFramesOf,
  PaymentsError,
} from '../../errors/payments-error.js';
import { OtherVersionError } from '../../events/event-dispatcher.js';
import type { EventDispatcher } from '../../events/event-dispatcher.js';
import { parseEnvelope } from '../../events/payment-event.js';
import type {
  PaymentEvent,
  PaymentEventContext,
  PaymentEventSource,
} from '../../events/payment-event.js';
import { nextRetryMs } from '../../events/retry-schedule.js';
import { Backoff, STORE_BACKOFF } from '../../runtime/backoff.js';
import { withTimeLimit } from '../../runtime/deadline.js';
import type { PaymentsRuntime } from '../../runtime/payments-runtime.js';
import { errorFacts, validTraceparent } from '../../telemetry/observers.js';
import type { ObserverInfo, Observers } from '../../telemetry/observers.js';
import type { StoredBodies } from '../store/body-codec.js';
import type { HandlerCatalogCache } from '../store/handler-catalog-cache.js';
import type { ClaimedDelivery, InboxStore, Lease, SettleResult } from '../store/inbox-store.js';
import type { HandlerPolicy } from './worker-options.js';

/**
 * If the worker could not settle a delivery, the attempt waits at most this many milliseconds for the end of its own
 * commit. A commit that takes longer has not succeeded, because it is still running the function that the handler
 * passed to it.
 */
const COMMIT_RESPONSE_MS = 5000;
/**
 * Milliseconds for which a released delivery keeps its slot if only another version of its handler takes the event.
 * During this time, a process with that version can claim the delivery.
 */
const OTHER_VERSION_MS = 1000;
/** A handler that still runs this many milliseconds after its time limit counts as ignoring its signal. */
const END_MS = 500;

/** The services that all attempts of this process share. */
export interface AttemptServices {
  readonly runtime: PaymentsRuntime;
  readonly store: InboxStore;
  readonly logger: ModuleLogger;
  readonly throttled: ThrottledLog;
  readonly catalog: Pick<HandlerCatalogCache, 'refresh' | 'takesElsewhere'>;
  readonly dispatcher: EventDispatcher;
  readonly bodies: StoredBodies;
  readonly observers: Observers;
  /** Number of handlers that still run although their signal was aborted at least 500 ms ago. */
  ignoringSignal: number;
}

export type AttemptOutcome = 'done' | 'failed';

/** A value that a handler threw, wrapped in an object because a handler can throw `undefined`. */
interface HandlerFailure {
  readonly thrown: unknown;
}

export interface AttemptResult {
  readonly outcome: AttemptOutcome;
  /** Whether another delivery to the handler became due. */
  readonly nextDue: boolean;
  /** Milliseconds until this delivery is due again; `null` if the worker schedules no retry. */
  readonly retryInMs: number | null;
  readonly observed: ObserverInfo['attemptEnded']['outcome'];
  /** When the outcome was stored, by the monotonic clock of the runtime. */
  readonly endedAt: number;
  /**
   * The error of the handler; `null` if it succeeded. An error with the {@link outcome} `done` means that the handler
   * failed after its commit.
   */
  readonly failure: HandlerFailure | null;
}

interface Settlement {
  readonly outcome: ObserverInfo['attemptEnded']['outcome'];
  readonly write: () => Promise<SettleResult>;
  readonly retryInMs: number | null;
  /** How long the slot stays taken after the delivery is settled, in milliseconds. */
  readonly keepSlotMs: number;
  /** Call this function after the outcome was stored. */
  readonly log: () => void;
}

/** Runs one attempt of a delivery: calls the handler within its time limit, and settles the delivery. */
export class Attempt {
  readonly #abort = new AbortController();
  readonly #commit: AttemptCommit;
  /** The trace context of this attempt, or else of the receipt of its event; `null` without tracing. */
  #traceparent: string | null = null;
  #closing = false;
  #endWait: () => void = () => {};
  #cancelTimeLimit: () => void = () => {};

  constructor(
    readonly delivery: ClaimedDelivery,
    private readonly policy: HandlerPolicy,
    private readonly services: AttemptServices,
    /** The event, if this process has just received and parsed it. The handler may change it. */
    private readonly parsed: PaymentEvent | null = null,
  ) {
    this.#commit = new AttemptCommit(services.store, delivery);
  }

  /**
   * Resolves when the delivery is settled, or could not be settled. Never rejects. `onSlotFree` is called once, when
   * the attempt does not need its slot any more, usually before the delivery is settled.
   */
  run(onSlotFree: () => void): Promise<AttemptResult> {
    return this.services.observers.active
      ? this.#observe(() => this.#run(onSlotFree))
      : this.#run(onSlotFree);
  }

  /**
   * Aborts the signal because the application closes. If the handler fails after its signal was aborted, the attempt is
   * not counted.
   */
  abandon(): void {
    this.#closing = true;
    this.#cancelTimeLimit();
    this.#abortWith('The application closes and no longer waits for this handler.', 'AbortError');
    this.#endWait();
  }

  /** Aborts the signal because the store freed the delivery, unless the delivery is done. */
  lose(): void {
    if (this.#commit.done) return;
    this.#abortWith(
      'The delivery was freed, because this process sent no heartbeat in time. Another process may run it.',
      'AbortError',
    );
  }

  /** `run` must not reject. */
  #observe(run: () => Promise<AttemptResult>): Promise<AttemptResult> {
    const { observers, runtime } = this.services;
    const { company, id, handler, attempt, receivedAt, ageMs, source, traced } = this.delivery;
    const info: ObserverInfo['attemptStarted'] = {
      company,
      eventId: id,
      handler,
      attempt,
      source,
      receivedAtMs: receivedAt.getTime(),
      ageMs,
    };
    const operation = {
      kind: 'attempt',
      traceparent: validTraceparent(traced?.traceparent),
      eventType: traced?.eventType ?? null,
      ...info,
    } as const;
    observers.notify('attemptStarted', info);
    const startedAt = runtime.monotonic();
    const runInSpan = (own: string | null): Promise<AttemptResult> => {
      this.#traceparent = own ?? operation.traceparent;
      return run();
    };
    return observers.observe(operation, runInSpan, ({ value }) => {
      const { observed, failure, retryInMs, endedAt } = value!;
      const facts =
        failure === null ? { error: null, errorCode: null } : errorFacts(failure.thrown);
      const ended = {
        ...info,
        ...facts,
        outcome: observed,
        durationMs: endedAt - startedAt,
        retryInMs: observed === 'failed' ? retryInMs : null,
        stack: failure === null ? '' : framesOf(failure.thrown),
      };
      observers.notify('attemptEnded', ended);
      if (observed === 'dead') observers.notify('deliveryDead', ended);
      return { outcome: observed, ...facts };
    });
  }

  async #run(onSlotFree: () => void): Promise<AttemptResult> {
    const failure = await this.#withinTime(this.#handle());
    const settlement = this.#settlementAfter(failure);
    const { keepSlotMs, retryInMs } = settlement;
    if (keepSlotMs === 0) onSlotFree();
    if (this.#commit.done) return this.#committed(failure);
    const result = await this.#settle(settlement);
    const endedAt = this.services.runtime.monotonic();
    if (keepSlotMs > 0) {
      await this.#wait(keepSlotMs);
      onSlotFree();
    }
    const outcome = failure === null ? 'done' : 'failed';
    if (result?.settled) {
      settlement.log();
      const { nextDue } = result;
      return { outcome, nextDue, retryInMs, failure, observed: settlement.outcome, endedAt };
    }
    // A commit that was under way when the time limit passed may have succeeded. The delivery keeps its lease while the
    // attempt waits for this commit.
    const { runtime } = this.services;
    await withTimeLimit(this.#commit.ended(), COMMIT_RESPONSE_MS, runtime).catch(() => {});
    if (this.#commit.done) return this.#committed(failure);
    if (result !== null) this.#logNotStored(failure);
    // An earlier call that settles the delivery may have succeeded and made another delivery due, although its response
    // was lost.
    return { outcome, nextDue: true, retryInMs, failure, observed: 'lost', endedAt };
  }

  /** Resolves when the handler and its commit have ended. Never rejects. */
  async #handle(): Promise<HandlerFailure | null> {
    const { delivery, policy, services, parsed } = this;
    let failure: HandlerFailure | null = null;
    try {
      if (delivery.attempt > policy.retry.attempts) throw outOfAttempts(delivery, policy);
      const body = await services.bodies.decode(delivery.raw, delivery);
      const newerHandled = (): Promise<boolean> => services.store.newerHandled(delivery);
      const { commit } = this.#commit;
      const context = new AttemptContext(
        delivery,
        body,
        this.#abort,
        this.#traceparent,
        commit,
        newerHandled,
      );
      await services.dispatcher.dispatch(parsed ?? parseEnvelope(body), context);
    } catch (thrown) {
      failure = { thrown };
      // If the refresh fails, the cached catalog is used.
      if (OtherVersionError.is(thrown)) await services.catalog.refresh().catch(() => {});
    }
    try {
      await this.#commit.close();
    } catch (thrown) {
      failure ??= { thrown };
    }
    return failure;
  }

  /**
   * Resolves with the failure of the handler, or `null`. If the time limit passes first, resolves with the failure
   * `handler_timeout`, but does not stop the handler.
   */
  #withinTime(handled: Promise<HandlerFailure | null>): Promise<HandlerFailure | null> {
    const { timeoutMs } = this.policy;
    return new Promise((resolve) => {
      this.#cancelTimeLimit = this.services.runtime.schedule(timeoutMs, () => {
        this.#abortWith(`The handler took longer than ${timeoutMs} ms.`, 'TimeoutError');
        this.#afterTimeLimit(handled);
        const message =
          `Handler ${this.delivery.handler} took longer than ${timeoutMs} ms, so its signal was aborted. Raise ` +
          '"timeoutMs" of @OnPaymentEvent or "worker.timeoutMs", or make the handler faster.';
        resolve({ thrown: new PaymentsError('handler_timeout', message) });
      });
      void handled.then((failure) => {
        this.#cancelTimeLimit();
        resolve(failure);
      });
    });
  }

  #afterTimeLimit(handled: Promise<HandlerFailure | null>): void {
    const { delivery, services } = this;
    const { handler } = delivery;
    let counted = false;
    const cancel = services.runtime.schedule(END_MS, () => {
      counted = true;
      services.ignoringSignal += 1;
      services.throttled.warn(
        `overdue ${handler}`,
        () =>
          `Handler ${handler} still runs although its time limit has passed and its signal was aborted ` +
          `(${services.ignoringSignal} such handlers in this process). The handler may still run during the next ` +
          'attempt. Pass context.signal to what the handler calls.',
        delivery,
      );
    });
    void handled.then((late) => {
      cancel();
      if (counted) services.ignoringSignal -= 1;
      const end = late === null ? 'It succeeded.' : describeError(late.thrown);
      const line = `Delivery ${this.#name}: the handler ended after its time limit. ${end}`;
      services.logger.debug(line, delivery);
    });
  }

  #settlementAfter(failure: HandlerFailure | null): Settlement {
    const { delivery, services } = this;
    const { store, logger, throttled } = services;
    const { retry } = this.policy;
    if (failure === null) {
      const write = () => store.complete(delivery);
      return { outcome: 'done', write, retryInMs: null, keepSlotMs: 0, log: () => {} };
    }
    const { thrown } = failure;
    const { handler, attempt } = delivery;
    const error = describeError(thrown);
    const failed = `Delivery ${this.#name} failed (attempt ${attempt} of ${retry.attempts})`;
    const released = {
      outcome: 'released',
      write: () => store.release(delivery),
      retryInMs: null,
    } as const;
    if (this.#closing) {
      const line = `${failed} as the application closes, so the attempt is not counted. ${error}`;
      return { ...released, keepSlotMs: 0, log: () => logger.warn(line, delivery) };
    }
    if (
      OtherVersionError.is(thrown) &&
      services.catalog.takesElsewhere(handler, thrown.eventType)
    ) {
      const line = `Delivery ${this.#name} is left to another version of the handler, so the attempt is not counted. ${error}`;
      const log = () => throttled.warn(`version of ${handler}`, line, delivery);
      return { ...released, keepSlotMs: OTHER_VERSION_MS, log };
    }
    const retryInMs = isUnrecoverable(thrown)
      ? null
      : nextRetryMs(retry, attempt, services.runtime.random());
    return {
      outcome: retryInMs === null ? 'dead' : 'failed',
      write: () => store.fail(delivery, { error, frames: ownFramesOf(thrown), retryInMs }),
      retryInMs,
      keepSlotMs: 0,
      log: () => {
        if (retryInMs === null) {
          const line = `${failed} and is dead; it is kept and can be redriven.`;
          logger.error(`${line} ${error}${framesOf(thrown)}`, delivery);
          return;
        }
        // The stack is logged only for the first and the last failure, because it is usually the same for each attempt.
        const frames = attempt === 1 ? framesOf(thrown) : '';
        logger.warn(`${failed}; next attempt in ${retryInMs} ms. ${error}${frames}`, delivery);
      },
    };
  }

  /**
   * Retries until the store responds. After the application began to close, tries only once more. Returns `null` if
   * nothing was stored.
   */
  async #settle({ write }: Settlement): Promise<SettleResult | null> {
    const { delivery, services } = this;
    let backoff: Backoff | null = null;
    for (let last = this.#closing; ; last = this.#closing) {
      try {
        return await write();
      } catch (error) {
        const line = `The result of delivery ${this.#name} could not be stored: ${describeError(error)}`;
        if (last) {
          services.logger.error(
            `${line}. The worker does not try to store it again, because the application is closing. The delivery runs again later.`,
            delivery,
          );
          return null;
        }
        services.throttled.warn(
          'settle',
          `${line}. The worker retries until it succeeds.`,
          delivery,
        );
        backoff ??= new Backoff(services.runtime, STORE_BACKOFF);
        await this.#wait(backoff.nextMs());
      }
    }
  }

  #committed(failure: HandlerFailure | null): AttemptResult {
    const { logger, runtime } = this.services;
    if (failure !== null) {
      const { thrown } = failure;
      const line = `Delivery ${this.#name} is done, but its handler failed after its commit.`;
      logger.error(`${line} ${describeError(thrown)}${framesOf(thrown)}`, this.delivery);
    }
    const { nextDue } = this.#commit;
    const outcome = 'done';
    const endedAt = runtime.monotonic();
    return { outcome, nextDue, retryInMs: null, failure, observed: outcome, endedAt };
  }

  #logNotStored(failure: HandlerFailure | null): void {
    const result = failure === null ? 'The handler succeeded.' : describeError(failure.thrown);
    const line =
      `The result of delivery ${this.#name} was not stored, because its lease is not valid any more: this process sent ` +
      `no heartbeat in time, or the response to an earlier try was lost. ${result}`;
    this.services.logger.warn(line, this.delivery);
  }

  get #name(): string {
    const { id, company, handler } = this.delivery;
    return `of event ${id} (company ${company}) to ${handler}`;
  }

  /** Resolves after `ms` milliseconds, or as soon as the closing application aborts the handler's signal. */
  #wait(ms: number): Promise<void> {
    if (this.#closing) return Promise.resolve();
    return new Promise((resolve) => {
      const cancel = this.services.runtime.schedule(ms, resolve);
      this.#endWait = () => {
        cancel();
        resolve();
      };
    });
  }

  #abortWith(message: string, name: 'AbortError' | 'TimeoutError'): void {
    this.#abort.abort(new DOMException(message, name));
  }
}

function outOfAttempts(
  { attempt, crashes }: ClaimedDelivery,
  policy: HandlerPolicy,
): PaymentsError {
  const { attempts } = policy.retry;
  const message =
    crashes > 0
      ? `The last of ${attempts} attempts ended without a result: its process died or sent no heartbeat in time.`
      : `The delivery had ${attempt - 1} attempts, and its retry schedule now allows ${attempts}.`;
  return new PaymentsError('unrecoverable', message);
}

/**
 * The context of one attempt. Copies the body only when the handler first reads it, so that other attempts do not copy
 * it.
 */
export class AttemptContext implements PaymentEventContext {
  readonly company: string;
  readonly handler: string;
  readonly attempt: number;
  readonly receivedAt: Date;
  readonly source: PaymentEventSource;
  readonly #body: Buffer;
  readonly #abort: AbortController;
  readonly #traceparent: string | null;
  #copy: Buffer | null = null;

  /** Returns the trace context of the attempt that created `context`; `null` without tracing and in a unit test. */
  static traceparentOf(context: PaymentEventContext): string | null {
    return context instanceof AttemptContext ? context.#traceparent : null;
  }

  constructor(
    { company, handler, attempt, receivedAt, source }: ClaimedDelivery,
    body: Buffer,
    abort: AbortController,
    traceparent: string | null,
    readonly commit: PaymentEventContext['commit'],
    readonly newerHandled: PaymentEventContext['newerHandled'],
  ) {
    this.company = company;
    this.handler = handler;
    this.attempt = attempt;
    this.receivedAt = receivedAt;
    this.source = source;
    this.#body = body;
    this.#abort = abort;
    this.#traceparent = traceparent;
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

/** The promise that `context.commit` returns. The promise records whether the handler awaits it. */
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
}

/** Implements `context.commit` of one attempt. An attempt can commit only once. */
export class AttemptCommit {
  #state: 'open' | 'under way' | 'done' | 'closed' = 'open';
  #promise: CommitPromise<unknown> | null = null;
  nextDue = false;

  constructor(
    private readonly store: InboxStore,
    private readonly lease: Lease,
  ) {}

  get done(): boolean {
    return this.#state === 'done';
  }

  readonly commit = <R>(work: (tx: never) => R | Promise<R>): Promise<R> => {
    if (this.#state !== 'open') return Promise.reject(this.#rejection());
    this.#state = 'under way';
    // The function is async, so that an exception of the store becomes a rejection.
    const committed = (async (): Promise<R> => {
      try {
        const run = work as (tx: unknown) => R | Promise<R>;
        const { result, nextDue } = await this.store.commit(this.lease, run);
        this.nextDue = nextDue;
        this.#state = 'done';
        return result;
      } catch (error) {
        // Usually nothing of the work was stored, so the handler may commit again. If the work was stored and only the
        // response was lost, the delivery is done. The store then rejects the next commit with `lease_lost`.
        this.#state = 'open';
        throw error;
      }
    })();
    const promise = new CommitPromise<R>((resolve, reject) => void committed.then(resolve, reject));
    // Without this listener, a failed commit that the handler does not await would make the process exit. close()
    // reports the failure.
    void Promise.prototype.then.call(promise, undefined, () => {});
    this.#promise = promise;
    return promise;
  };

  /**
   * Rejects all further commits. Waits for a commit that is under way, and throws its error. Also throws the error of a
   * failed commit that the handler did not await, because otherwise the attempt would succeed without the effects of
   * the commit.
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

  #rejection(): PaymentsError {
    const message =
      this.#state === 'closed'
        ? 'The handler has returned, so its delivery is settled: call context.commit() before the handler returns.'
        : 'An attempt can commit only once, because the first commit settles its delivery. Do all of the work in one commit.';
    return new PaymentsError('commit_rejected', message);
  }
}
