import { LogLine } from '../../errors/log-line.js';
import { describeError, PaymentsError } from '../../errors/payments-error.js';
import { parseEnvelope } from '../../events/payment-event.js';
import { OtherVersionError } from '../../events/event-dispatcher.js';
import type { RetrySchedule } from '../../events/retry-schedule.js';
import { withTimeLimit } from '../../runtime/deadline.js';
import type { HandlerPolicy } from './worker-options.js';
import type { AttemptOutcome } from './attempt-outcomes.js';
import type { ClaimedDelivery } from '../store/inbox-store.js';
import { AttemptContext } from './attempt-context.js';
import type { AttemptServices } from './attempt-context.js';
import { observeAttempt } from './observe-attempt.js';
import type { ObservedEnd } from './observe-attempt.js';
import { AttemptCommit, describeWithStack, settle, settleActionFor } from './settle-attempt.js';
import type { EndedAttempt, HandlerFailure } from './settle-attempt.js';

/**
 * How long an attempt that could not be settled waits for the end of its own commit, in milliseconds. A commit that
 * takes longer still runs its work, so it has not succeeded.
 */
const COMMIT_RESPONSE_MS = 5000;

/** The result of an attempt, for the worker. */
export interface AttemptResult {
  readonly outcome: AttemptOutcome;
  /** Whether another delivery to the handler became due. */
  readonly nextDue: boolean;
  /** In how many milliseconds this delivery is due again; `null` if the worker schedules no retry. */
  readonly retryInMs: number | null;
}

/** Called at steps of an attempt. */
export interface AttemptHooks {
  /** Called once, when the attempt needs its slot no more: usually before the delivery is settled. */
  readonly onSlotFree: () => void;
  /** Called if the time limit has passed. `handled` resolves when the handler ends. */
  readonly onTimeUp: (handled: Promise<unknown>) => void;
}

/** One attempt of one delivery: runs its handler within its time limit, and settles the delivery. */
export class HandlerAttempt implements EndedAttempt {
  readonly #abort = new AbortController();
  readonly #commit: AttemptCommit;
  #closing = false;
  #endWait: () => void = () => {};
  #cancelTimeLimit: () => void = () => {};
  /** Resolves when the delivery is settled, or could not be settled. Never rejects. */
  readonly ended: Promise<AttemptResult>;

  constructor(
    readonly delivery: ClaimedDelivery,
    private readonly policy: HandlerPolicy,
    readonly services: AttemptServices,
    private readonly hooks: AttemptHooks,
  ) {
    this.#commit = new AttemptCommit(services.store, delivery);
    this.ended = services.observers.active
      ? observeAttempt(delivery, services, () => this.#run())
      : this.#run();
  }

  /** Aborts the signal because the application closes. If the handler fails after that, the attempt is not counted. */
  abandon(): void {
    this.#closing = true;
    this.#cancelTimeLimit();
    this.#abortWith('The application closes and waits no longer for this handler.', 'AbortError');
    this.#endWait();
  }

  /** Aborts the signal because the store freed the delivery, unless the delivery is done. */
  lose(): void {
    if (this.#commit.done) return;
    this.#abortWith(
      'The delivery was freed, because this process sent no heartbeat in time: it may be running elsewhere.',
      'AbortError',
    );
  }

  get name(): string {
    const { id, company, handler } = this.delivery;
    return `of event ${id} (company ${company}) to ${handler}`;
  }

  get retry(): RetrySchedule {
    return this.policy.retry;
  }

  get closing(): boolean {
    return this.#closing;
  }

  wait(ms: number): Promise<void> {
    if (this.#closing) return Promise.resolve();
    return new Promise((resolve) => {
      const cancel = this.services.runtime.schedule(ms, resolve);
      this.#endWait = () => {
        cancel();
        resolve();
      };
    });
  }

  async #run(): Promise<AttemptResult & ObservedEnd> {
    const failure = await this.#withinTime(this.#handle());
    const action = settleActionFor(failure, this);
    const { keepSlotMs, retryInMs } = action;
    if (keepSlotMs === 0) this.hooks.onSlotFree();
    if (this.#commit.done) return this.#committed(failure);
    const result = await settle(action, this);
    const endedAt = this.services.runtime.monotonic();
    if (keepSlotMs > 0) {
      await this.wait(keepSlotMs);
      this.hooks.onSlotFree();
    }
    const outcome = failure === null ? 'completed' : 'failed';
    if (result?.settled) {
      action.log();
      const { nextDue } = result;
      return { outcome, nextDue, retryInMs, failure, observed: action.outcome, endedAt };
    }
    // A commit that was under way when the time limit passed may have succeeded. The delivery keeps its lease
    // meanwhile.
    const late = (): Error => new Error('late');
    const { runtime } = this.services;
    await withTimeLimit(this.#commit.ended(), COMMIT_RESPONSE_MS, runtime, late).catch(() => {});
    if (this.#commit.done) return this.#committed(failure);
    if (result !== null) this.#logNotStored(failure);
    // An earlier try to settle, whose response was lost, may have taken effect and made another delivery due.
    return { outcome, nextDue: true, retryInMs, failure, observed: 'lost', endedAt };
  }

  /** Resolves when the handler and its commit have ended. Never rejects. */
  async #handle(): Promise<HandlerFailure | null> {
    const { delivery, policy, services } = this;
    let failure: HandlerFailure | null = null;
    try {
      if (delivery.attempt > policy.retry.attempts) throw outOfAttempts(delivery, policy);
      const body = await services.bodies.decode(delivery.raw, delivery);
      const newerHandled = (): Promise<boolean> => services.store.newerHandled(delivery);
      const { commit } = this.#commit;
      const context = new AttemptContext(delivery, body, this.#abort, commit, newerHandled);
      await services.dispatcher.dispatch(parseEnvelope(body), context);
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

  /** Resolves as `handled` does or, if the time limit passes first, with `handler_timeout`. Does not stop the handler. */
  #withinTime(handled: Promise<HandlerFailure | null>): Promise<HandlerFailure | null> {
    const { runtime, logger } = this.services;
    const { timeoutMs } = this.policy;
    return new Promise((resolve) => {
      this.#cancelTimeLimit = runtime.schedule(timeoutMs, () => {
        this.#abortWith(`The handler took longer than ${timeoutMs} ms.`, 'TimeoutError');
        this.hooks.onTimeUp(handled);
        void handled.then((late) => {
          const end = late === null ? 'It succeeded.' : describeError(late.thrown);
          const line = `Delivery ${this.name}: the handler ended after its time limit. ${end}`;
          logger.debug(new LogLine(line, this.delivery));
        });
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

  #committed(failure: HandlerFailure | null): AttemptResult & ObservedEnd {
    if (failure !== null) {
      const line = `Delivery ${this.name} is done, but its handler failed after its commit.`;
      this.services.logger.error(
        new LogLine(`${line} ${describeWithStack(failure.thrown)}`, this.delivery),
      );
    }
    const { nextDue } = this.#commit;
    const endedAt = this.services.runtime.monotonic();
    const outcome = 'completed';
    return { outcome, nextDue, retryInMs: null, failure, observed: outcome, endedAt };
  }

  #logNotStored(failure: HandlerFailure | null): void {
    const result = failure === null ? 'The handler succeeded.' : describeError(failure.thrown);
    const line =
      `The result of delivery ${this.name} was not stored, because another attempt has the delivery now: this process ` +
      `sent no heartbeat in time, or the response to an earlier try was lost. ${result}`;
    this.services.logger.warn(new LogLine(line, this.delivery));
  }

  #abortWith(message: string, name: 'AbortError' | 'TimeoutError'): void {
    this.#abort.abort(new DOMException(message, name));
  }
}

/** The error of an attempt after the last one: the last was lost, or the schedule had more attempts before. */
function outOfAttempts(
  { attempt, crashes }: ClaimedDelivery,
  policy: HandlerPolicy,
): PaymentsError {
  const { attempts } = policy.retry;
  const message =
    crashes > 0
      ? `The last of ${attempts} attempts ended without a result: its process died or was cut off.`
      : `It was started ${attempt - 1} times, and its retry schedule has ${attempts} attempts now.`;
  return new PaymentsError('unrecoverable', message);
}
