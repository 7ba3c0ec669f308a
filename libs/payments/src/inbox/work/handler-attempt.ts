import { parseEnvelope } from '../../events/payment-event.js';
import { OtherVersionError } from '../../events/event-dispatcher.js';
import type { EventDispatcher } from '../../events/event-dispatcher.js';
import { describeError, PaymentsError } from '../../errors/payments-error.js';
import { SUCCEEDED, traced, verdictOf } from './settle-attempt.js';
import type { HandlerFailure, SettleAction, VerdictServices } from './settle-attempt.js';
import { Backoff, STORE_BACKOFF } from '../../runtime/backoff.js';
import { withTimeLimit } from '../../runtime/deadline.js';
import type { HandlerPolicy } from '../inbox-options.js';
import type { ClaimedDelivery, InboxStore, SettleResult } from '../store/inbox-store.js';
import type { OverdueRuns } from './overdue-runs.js';
import { AttemptCommit, AttemptContext } from './run-context.js';
import type { AttemptOutcome } from '../receive/awaited-handlers.js';
import type { StoredBodies } from '../store/body-codec.js';

/** How long the answer to a commit that has won may take. One whose work hangs has not won. */
const COMMIT_ANSWER_MS = 5000;

/** What runs use. */
export interface AttemptServices extends VerdictServices {
  readonly store: InboxStore;
  readonly dispatcher: EventDispatcher;
  readonly bodies: StoredBodies;
  readonly overdue: OverdueRuns;
}

/** How a run ended. */
export interface AttemptResult {
  readonly outcome: AttemptOutcome;
  /** Whether another delivery to the handler became due. */
  readonly nextDue: boolean;
  /** In how many milliseconds this delivery is due again; `null` if it is not. */
  readonly retryInMs: number | null;
}

/** One attempt of one delivery: runs its handler within its time limit, and settles the delivery. */
export class HandlerAttempt {
  readonly #abort = new AbortController();
  readonly #commit: AttemptCommit;
  #closing = false;
  #endWait: () => void = () => {};
  #cancelTimeLimit: () => void = () => {};
  /** Resolves when the delivery is settled, or could not be. Never rejects. */
  readonly ended: Promise<AttemptResult>;

  constructor(
    private readonly delivery: ClaimedDelivery,
    private readonly policy: HandlerPolicy,
    private readonly worker: AttemptServices,
    /** Called once, when the handler has ended or its time is up, before the delivery is settled. */
    private readonly onHandled: () => void,
  ) {
    this.#commit = new AttemptCommit(worker.store, delivery);
    this.ended = this.#run();
  }

  /** The application closes: aborts the signal. If the handler fails now, the attempt is not charged. */
  abandon(): void {
    this.#closing = true;
    this.#cancelTimeLimit();
    this.#abortWith('The application closes and waits no longer for this handler.', 'AbortError');
    this.#endWait();
  }

  /** The delivery was freed: aborts the signal, unless the delivery is done. */
  lose(): void {
    if (this.#commit.done) return;
    this.#abortWith(
      'The delivery was freed, because this process sent no heartbeat in time: it may be running elsewhere.',
      'AbortError',
    );
  }

  /** The delivery, for messages. */
  get #name(): string {
    const { id, company, handler } = this.delivery;
    return `of event ${id} (company ${company}) to ${handler}`;
  }

  async #run(): Promise<AttemptResult> {
    const failure = await this.#withinTime(this.#handle());
    const verdict = failure === null ? SUCCEEDED : this.#verdictOf(failure);
    if (verdict.keepPlaceMs === 0) this.onHandled();
    if (this.#commit.done) return this.#committed(failure);
    const settlement = await this.#settle(verdict);
    if (verdict.keepPlaceMs > 0) {
      await this.#wait(verdict.keepPlaceMs);
      this.onHandled();
    }
    if (settlement?.settled) {
      verdict.log();
      const outcome = failure === null ? 'succeeded' : 'failed';
      return { outcome, nextDue: settlement.nextDue, retryInMs: verdict.retryInMs };
    }
    // A commit that was under way when the time was up may have won.
    await this.#commitAnswered();
    if (this.#commit.done) return this.#committed(failure);
    if (settlement !== null) this.#logNotRecorded(failure);
    // An earlier try that failed may have taken effect, and made another delivery due.
    const { retryInMs } = verdict;
    return { outcome: failure ? 'failed' : 'succeeded', nextDue: true, retryInMs };
  }

  #verdictOf(failure: HandlerFailure): SettleAction {
    return verdictOf(failure, {
      delivery: this.delivery,
      name: this.#name,
      retry: this.policy.retry,
      closing: this.#closing,
      services: this.worker,
    });
  }

  /** Resolves when the handler and its commit have ended. Never rejects. */
  async #handle(): Promise<HandlerFailure | null> {
    const { delivery, policy, worker } = this;
    let failure: HandlerFailure | null = null;
    try {
      if (delivery.attempt > policy.retry.attempts) throw outOfAttempts(delivery, policy);
      const body = await worker.bodies.decode(delivery.raw, delivery);
      const context = new AttemptContext(delivery, body, this.#abort, this.#commit.commit);
      await worker.dispatcher.dispatch(parseEnvelope(body), context);
    } catch (thrown) {
      failure = { thrown };
      // If that fails, what is known of the other versions is used.
      if (OtherVersionError.is(thrown)) await worker.catalog.refresh().catch(() => {});
    }
    try {
      await this.#commit.close();
    } catch (thrown) {
      failure ??= { thrown };
    }
    return failure;
  }

  /** Resolves as `handled` does or, when the time is up, with that failure; the handler may go on. */
  #withinTime(handled: Promise<HandlerFailure | null>): Promise<HandlerFailure | null> {
    const { runtime, logger, overdue } = this.worker;
    const { timeoutMs } = this.policy;
    const { handler } = this.delivery;
    return new Promise((resolve) => {
      this.#cancelTimeLimit = runtime.schedule(timeoutMs, () => {
        this.#abortWith(`The handler took longer than ${timeoutMs} ms.`, 'TimeoutError');
        overdue.add(handler, handled);
        void handled.then((late) =>
          logger.debug(
            `Delivery ${this.#name}: the handler ended after its time was up. ` +
              (late === null ? 'It succeeded.' : describeError(late.thrown)),
          ),
        );
        const message =
          `Handler ${handler} took longer than ${timeoutMs} ms, so its signal was aborted. Raise "timeoutMs" of ` +
          '@OnPaymentEvent or "worker.timeoutMs", or make it faster.';
        resolve({ thrown: new PaymentsError('handler_timeout', message) });
      });
      void handled.then((failure) => {
        this.#cancelTimeLimit();
        resolve(failure);
      });
    });
  }

  #committed(failure: HandlerFailure | null): AttemptResult {
    if (failure !== null) {
      this.worker.logger.error(
        `Delivery ${this.#name} is done, but its handler failed after its commit. ${traced(failure.thrown)}`,
      );
    }
    return { outcome: 'succeeded', nextDue: this.#commit.nextDue, retryInMs: null };
  }

  /**
   * Settles the delivery. While the store is down, it tries again until the store answers or, when the application closes,
   * once more. Resolves with `null` if it gave up.
   */
  async #settle(verdict: SettleAction): Promise<SettleResult | null> {
    const { store, runtime, logger, throttled } = this.worker;
    let backoff: Backoff | null = null;
    for (let last = this.#closing; ; last = this.#closing) {
      try {
        return await verdict.settle(store, this.delivery);
      } catch (error) {
        const what = `The result of delivery ${this.#name} could not be stored: ${describeError(error)}`;
        if (last) {
          logger.error(`${what}. The application closes, so the delivery runs again.`);
          return null;
        }
        throttled.warn('settle', () => `${what}. The worker tries again until it can.`);
        backoff ??= new Backoff(runtime, STORE_BACKOFF);
        await this.#wait(backoff.nextMs());
      }
    }
  }

  /** Waits for a commit that is under way, within a bound: until it resolves, the delivery holds a place. */
  async #commitAnswered(): Promise<void> {
    const late = (): Error => new Error('late');
    const answered = this.#commit.settled();
    await withTimeLimit(answered, COMMIT_ANSWER_MS, this.worker.runtime, late).catch(() => {});
  }

  #wait(ms: number): Promise<void> {
    if (this.#closing) return Promise.resolve();
    return new Promise((resolve) => {
      const cancel = this.worker.runtime.schedule(ms, resolve);
      this.#endWait = () => {
        cancel();
        resolve();
      };
    });
  }

  #logNotRecorded(failure: HandlerFailure | null): void {
    const result = failure === null ? 'The handler succeeded.' : describeError(failure.thrown);
    this.worker.logger.warn(
      `The result of delivery ${this.#name} was not stored, because another run has the delivery now: this process ` +
        `sent no heartbeat in time, or the answer to an earlier try was lost. ${result}`,
    );
  }

  #abortWith(message: string, name: 'AbortError' | 'TimeoutError'): void {
    this.#abort.abort(new DOMException(message, name));
  }
}

/** The last attempt was charged but had no result, or the schedule was longer when the delivery failed. */
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
