import { createHash } from 'node:crypto';
import { Inject, Injectable, Logger } from '@nestjs/common';
import { PaymentsApiService } from '../api/payments-api.service.js';
import { ThrottledLog } from '../errors/throttled-log.js';
import { OVERDUE_EVENT_TYPE } from '../events/handler-registry.js';
import type { PaymentEvent } from '../events/payment-event.js';
import { EventReceiver } from '../inbox/receive/event-receiver.js';
import { VerifiedEvent } from '../inbox/receive/verified-event.js';
import { POLL_HANDLER, referenceOfEvent } from '../inbox/store/expectation-store.js';
import type { PollOutcome, StoredExpectation } from '../inbox/store/expectation-store.js';
import { HandlerCatalogCache } from '../inbox/store/handler-catalog-cache.js';
import { INBOX_STORE } from '../inbox/store/inbox-store.js';
import type { ClaimedDelivery, EventSource, InboxStore } from '../inbox/store/inbox-store.js';
import { InternalHandlers } from '../inbox/work/internal-handlers.js';
import type { SettleAction } from '../inbox/work/settle-attempt.js';
import { PAYMENTS_RUNTIME } from '../runtime/payments-runtime.js';
import type { PaymentsRuntime } from '../runtime/payments-runtime.js';
import { withTimeLimit } from '../runtime/deadline.js';
import { NO_OBSERVERS, Observers } from '../telemetry/observers.js';
import { askService } from './ask-service.js';
import type { Finding } from './ask-service.js';
import { observePoll } from './observe-poll.js';
import type { PollEnd } from './observe-poll.js';
import { nextPollInMs, PollRate } from './poll-schedule.js';
import { RECONCILE_OPTIONS } from './reconcile-options.js';
import type { ResolvedReconcileOptions } from './reconcile-options.js';

/** How long the calls of one poll, `find` and `interpret` may take together, in milliseconds. */
const ASK_MS = 60_000;
/** How long a poll may take before the worker releases it, in milliseconds: {@link ASK_MS} and time for the store. */
const POLL_MS = 120_000;
/**
 * How long the slot of a poll stays taken that is postponed by more than {@link LONG_MS}, in milliseconds. It limits how
 * many polls a process postpones per second if thousands become due at once.
 */
const POSTPONE_MS = 25;
const LONG_MS = 10_000;

interface PollArguments {
  readonly signal: AbortSignal;
  readonly options: ResolvedReconcileOptions;
  /** By the monotonic clock. */
  readonly startedAt: number;
}

const NO_LOG = { keepSlotMs: 0, log: () => {} };
const DONE: SettleAction = {
  ...NO_LOG,
  outcome: 'completed',
  retryInMs: null,
  write: (store, delivery) => store.complete(delivery),
};

/** Polls the service about expected payments: the handler of the deliveries of expectations. */
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
    const startedAt = this.runtime.monotonic();
    const reference = referenceOfEvent(delivery.id);
    const { observers, runtime, store } = this;
    const expectation = await store.expectations.find(delivery.company, reference);
    if (expectation === undefined || hasEnded(expectation, delivery)) return DONE;
    const poll = () => this.#pollOne(expectation, delivery, { signal, options, startedAt });
    if (!observers.active) return (await poll()).action;
    return observePoll(expectation, delivery, { observers, runtime, store }, poll);
  }

  async #pollOne(
    expectation: StoredExpectation,
    delivery: ClaimedDelivery,
    { signal, options, startedAt }: PollArguments,
  ): Promise<PollEnd> {
    const finding = await this.#ask(expectation, signal, options);
    // The result of an aborted poll says nothing about the payment.
    signal.throwIfAborted();
    const result = await this.#receive(expectation, finding, options);
    this.#log(expectation, result);
    const elapsedMs = delivery.ageMs + this.runtime.monotonic() - startedAt;
    const isWaiting = expectation.state === 'waiting';
    const next: PollOutcome['next'] = isWaiting
      ? nextPollInMs(expectation, elapsedMs, this.runtime.random())
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
  ): Promise<Finding> {
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
    finding: Finding,
    { eventTypes }: ResolvedReconcileOptions,
  ): Promise<Omit<PollOutcome, 'next'>> {
    if (finding.result !== 'event') return finding;
    const { transactionId, eventType, data } = finding;
    const stored = await this.store.expectations.eventsOf(company, transactionId, eventTypes);
    const [other] = stored;
    if (other !== undefined && !stored.some((event) => event.eventType === eventType)) {
      const detail =
        `The service reports "${eventType}", and the inbox has event ${other.id} of type "${other.eventType}" of the ` +
        'same transaction. Nothing was changed.';
      return { result: 'contradiction', detail };
    }
    const id = boundedId(`poll:${transactionId}:${eventType}`);
    await this.#store(company, { id, eventType, data }, 'poll');
    return { result: 'event', detail: null };
  }

  /** Stores the event for `@OnPaymentOverdue` handlers, if any process has one. */
  async #receiveOverdue(expectation: StoredExpectation): Promise<void> {
    const has = () => this.catalog.matching(OVERDUE_EVENT_TYPE, 'overdue').length > 0;
    if (!has()) await this.catalog.refresh();
    if (!has()) return;
    const { company, reference, transactionId, dueBy, createdAt, polls } = expectation;
    const data = {
      reference,
      transactionId,
      dueBy: dueBy?.toISOString() ?? null,
      createdAt: createdAt.toISOString(),
      polls,
    };
    const event = { id: `overdue:${reference}`, eventType: OVERDUE_EVENT_TYPE, data };
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
      this.#logger.error(`A poll of ${payment} contradicts the inbox. ${detail}`);
    } else if (result === 'unknown' && detail !== null && lastPoll?.detail !== detail) {
      const line = `A poll of ${payment} gave no result, and is repeated by its schedule. ${detail}`;
      this.#throttled.warn(`unknown ${company}`, line);
    }
  }
}

/** Whether the expectation ended before its poll started, so that nobody asked for the poll. */
function hasEnded(
  { state, fulfilled }: StoredExpectation,
  { receivedAt, ageMs }: ClaimedDelivery,
): boolean {
  if (state === 'cancelled') return true;
  const claimedAt = receivedAt.getTime() + ageMs;
  return fulfilled !== null && fulfilled.at.getTime() > claimedAt;
}

/** Releases the delivery without a charge, due in `waitMs`. */
function postpone(waitMs: number): SettleAction {
  return {
    outcome: 'released',
    retryInMs: waitMs,
    keepSlotMs: waitMs > LONG_MS ? POSTPONE_MS : 0,
    log: () => {},
    write: (store, delivery) => store.release(delivery, waitMs),
  };
}

/** An id of at most 255 characters, and always the same for the same text. */
function boundedId(id: string): string {
  if (id.length <= 255) return id;
  return `poll:${createHash('sha256').update(id).digest('hex')}`;
}
