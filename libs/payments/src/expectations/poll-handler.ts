import { Inject, Injectable, Logger } from '@nestjs/common';
import { PaymentsApiService } from '../api/payments-api.service.js';
import { LogLine } from '../errors/log-line.js';
import { ThrottledLog } from '../errors/throttled-log.js';
import { OVERDUE_EVENT_TYPE } from '../events/handler-registry.js';
import type { PaymentEvent } from '../events/payment-event.js';
import { EventReceiver } from '../inbox/receive/event-receiver.js';
import { idOf, OVERDUE_ID, POLL_ID, VerifiedEvent } from '../inbox/receive/verified-event.js';
import { POLL_HANDLER, referenceOfEvent } from '../inbox/store/expectation-store.js';
import type { PollOutcome, StoredExpectation } from '../inbox/store/expectation-store.js';
import { HandlerCatalogCache } from '../inbox/store/handler-catalog-cache.js';
import { INBOX_STORE } from '../inbox/store/inbox-store.js';
import type { ClaimedDelivery, EventSource, InboxStore } from '../inbox/store/inbox-store.js';
import { boundedError } from '../inbox/store/stored-event.js';
import { InternalHandlers } from '../inbox/work/internal-handlers.js';
import type { SettleAction } from '../inbox/work/settle-attempt.js';
import { PAYMENTS_RUNTIME } from '../runtime/payments-runtime.js';
import type { PaymentsRuntime } from '../runtime/payments-runtime.js';
import { withTimeLimit } from '../runtime/deadline.js';
import { NO_OBSERVERS, Observers } from '../telemetry/observers.js';
import { askService } from './ask-service.js';
import type { AskResult } from './ask-service.js';
import { observePoll } from './observe-poll.js';
import type { PollEnd } from './observe-poll.js';
import { nextPollInMs, PollRate } from './poll-schedule.js';
import { RECONCILE_OPTIONS } from './reconcile-options.js';
import type { ResolvedReconcileOptions } from './reconcile-options.js';

/** Time limit of the calls of one poll, including `find` and `interpret`, in milliseconds. */
const ASK_MS = 60_000;
/** How long a poll may take before the worker releases it, in milliseconds: {@link ASK_MS} and time for the store. */
const POLL_MS = 120_000;
/**
 * How long a poll that is postponed by more than {@link LONG_MS} keeps its slot, in milliseconds. This limits how many
 * polls a process postpones per second if thousands become due at once.
 */
const POSTPONE_MS = 100;
const LONG_MS = 10_000;

interface PollArguments {
  readonly signal: AbortSignal;
  readonly options: ResolvedReconcileOptions;
  /** When the expectation was read, by the monotonic clock. */
  readonly readAt: number;
}

const NO_LOG = { keepSlotMs: 0, log: () => {} };
const DONE: SettleAction = {
  ...NO_LOG,
  outcome: 'completed',
  retryInMs: null,
  write: (store, delivery) => store.complete(delivery),
};

/** The handler of the deliveries of expectations: polls the service about expected payments. */
@Injectable()
export class PollHandler {
  readonly #logger = new Logger('PaymentExpectations');
  readonly #throttled: ThrottledLog;

  constructor(
    @Inject(RECONCILE_OPTIONS) private readonly options: ResolvedReconcileOptions | null,
    @Inject(INBOX_STORE) private readonly store: InboxStore,
    @Inject(PAYMENTS_RUNTIME) private readonly runtime: PaymentsRuntime,
    private readonly api: PaymentsApiService,
    private readonly receiver: EventReceiver,
    private readonly catalog: HandlerCatalogCache,
    private readonly internal: InternalHandlers,
    private readonly observers: Observers = NO_OBSERVERS,
  ) {
    this.#throttled = new ThrottledLog(this.#logger, runtime);
  }

  /** Adds the handler to this process, if the option `reconcile` is set. Call it before the worker starts. */
  register(): void {
    const { options } = this;
    if (options === null) return;
    const rate = new PollRate(options.maxPollsPerSecond, this.runtime);
    this.internal.add({
      name: POLL_HANDLER,
      patterns: options.eventTypes,
      options: { concurrency: options.concurrency, timeoutMs: POLL_MS },
      run: async (delivery, signal) => {
        const waitMs = rate.take(delivery.company);
        return waitMs > 0 ? postpone(waitMs) : this.#poll(delivery, signal, options);
      },
    });
  }

  async #poll(
    delivery: ClaimedDelivery,
    signal: AbortSignal,
    options: ResolvedReconcileOptions,
  ): Promise<SettleAction> {
    const reference = referenceOfEvent(delivery.id);
    const { observers, runtime, store } = this;
    const expectation = await store.expectations.find(delivery.company, reference);
    if (expectation === undefined || expectation.state === 'cancelled') return DONE;
    const readAt = runtime.monotonic();
    const poll = () => this.#pollOne(expectation, { signal, options, readAt });
    if (!observers.active) return (await poll()).action;
    return observePoll(expectation, delivery, { observers, runtime, store }, poll);
  }

  async #pollOne(
    expectation: StoredExpectation,
    { signal, options, readAt }: PollArguments,
  ): Promise<PollEnd> {
    const found = await this.#ask(expectation, signal, options);
    // The result of an aborted poll says nothing about the payment.
    signal.throwIfAborted();
    const result = await this.#receive(expectation, found, options);
    this.#log(expectation, result);
    const elapsedMs = expectation.ageMs + this.runtime.monotonic() - readAt;
    const isWaiting = expectation.state === 'waiting';
    const next: PollOutcome['next'] = isWaiting
      ? nextPollInMs(
          expectation,
          { polls: expectation.polls + 1, elapsedMs },
          this.runtime.random(),
        )
      : 'end';
    if (next === 'overdue' && result.result !== 'event') await this.#receiveOverdue(expectation);
    const outcome: PollOutcome = { ...result, next };
    const action: SettleAction = {
      ...NO_LOG,
      outcome: 'completed',
      retryInMs: typeof next === 'number' ? next : null,
      write: (store, lease) => store.expectations.settlePoll(lease, outcome),
    };
    return { action, outcome };
  }

  async #ask(
    expectation: StoredExpectation,
    signal: AbortSignal,
    options: ResolvedReconcileOptions,
  ): Promise<AskResult> {
    const { company, reference } = expectation;
    const late = new AbortController();
    const asked = askService(expectation, {
      options,
      api: this.api.forCompany(company),
      signal: AbortSignal.any([signal, late.signal]),
      attach: (id) => this.store.expectations.attach(company, reference, id),
    });
    const timeUp = new Error(`The poll took longer than ${ASK_MS} ms.`);
    try {
      return await withTimeLimit(asked, ASK_MS, this.runtime, () => timeUp);
    } catch (error) {
      if (error !== timeUp) throw error;
      late.abort(timeUp);
      return { result: 'unknown', detail: timeUp.message };
    }
  }

  /** Receives the event that the poll found, unless it contradicts an event that is stored already. */
  async #receive(
    { company }: StoredExpectation,
    found: AskResult,
    { eventTypes }: ResolvedReconcileOptions,
  ): Promise<Omit<PollOutcome, 'next'>> {
    if (found.result !== 'event') return found;
    const { transactionId, eventType, data } = found;
    const stored = await this.store.expectations.eventsOf(company, transactionId, eventTypes);
    const [other] = stored;
    if (other !== undefined && !stored.some((event) => event.eventType === eventType)) {
      const detail =
        `The service reports "${eventType}", and the inbox has event ${other.id} of type "${other.eventType}" of the ` +
        'same transaction. Nothing was changed.';
      return { result: 'contradiction', detail };
    }
    // The colons of the transaction id are escaped, so that no other transaction and type give the same id.
    const name = transactionId.replaceAll('%', '%25').replaceAll(':', '%3A');
    const id = idOf(POLL_ID, `${name}:${eventType}`);
    await this.#store(company, { id, eventType, data }, 'poll');
    return { result: 'event', detail: null };
  }

  /** Stores the event for `@OnPaymentOverdue` handlers, if any process has one. */
  async #receiveOverdue(expectation: StoredExpectation): Promise<void> {
    const hasHandler = () => this.catalog.matching(OVERDUE_EVENT_TYPE, 'overdue').length > 0;
    if (!hasHandler()) await this.catalog.refresh();
    if (!hasHandler()) return;
    const { company, reference, transactionId, dueBy, createdAt, polls } = expectation;
    const data = {
      reference,
      transactionId,
      dueBy: dueBy?.toISOString() ?? null,
      createdAt: createdAt.toISOString(),
      // The last poll has ended, and is not stored yet.
      polls: polls + 1,
    };
    const event = { id: `${OVERDUE_ID}${reference}`, eventType: OVERDUE_EVENT_TYPE, data };
    await this.#store(company, event, 'overdue');
  }

  async #store(
    company: string,
    fields: Pick<PaymentEvent, 'id' | 'eventType'> & { data: Readonly<Record<string, unknown>> },
    source: EventSource,
  ): Promise<void> {
    const timestamp = new Date(this.runtime.now()).toISOString();
    const event: PaymentEvent = { ...fields, timestamp, metadata: {} };
    const raw = Buffer.from(JSON.stringify(event));
    const arrivedAt = this.runtime.monotonic();
    await this.receiver.receiveOwn(new VerifiedEvent(company, event, raw, arrivedAt, {}, source));
  }

  #log(
    { company, reference, contradiction, lastPoll }: StoredExpectation,
    { result, detail }: Omit<PollOutcome, 'next'>,
  ): void {
    const payment = `the expected payment ${reference} (company ${company})`;
    if (result === 'contradiction' && contradiction === null) {
      const line = `A poll of ${payment} contradicts the inbox. ${detail}`;
      this.#logger.error(new LogLine(line, { company }));
    } else if (
      result === 'unknown' &&
      detail !== null &&
      lastPoll?.detail !== boundedError(detail)
    ) {
      const line = `A poll of ${payment} gave no result, and is repeated by its schedule. ${detail}`;
      this.#throttled.warn(`unknown ${company}`, new LogLine(line, { company }));
    }
  }
}

/** Releases the delivery, due in `waitMs`, without charging the attempt. */
function postpone(waitMs: number): SettleAction {
  return {
    outcome: 'released',
    retryInMs: waitMs,
    keepSlotMs: waitMs > LONG_MS ? POSTPONE_MS : 0,
    log: () => {},
    write: (store, delivery) => store.release(delivery, waitMs),
  };
}
