import { Inject, Injectable } from '@nestjs/common';
import { PaymentsApiService } from '../api/payments-api.service.js';
import { LogLine, ModuleLogger, ThrottledLog } from '../errors/module-log.js';
import { describeError } from '../errors/payments-error.js';
import { OVERDUE_EVENT_TYPE } from '../events/handler-registry.js';
import type { PaymentEvent, PaymentOverdueData } from '../events/payment-event.js';
import { EventReceiver } from '../inbox/receive/event-receiver.js';
import { idOf, OVERDUE_ID, POLL_ID, VerifiedEvent } from '../inbox/receive/verified-event.js';
import type {
  ClaimedPoll,
  PollOutcome,
  PollSettlement,
  SettledPoll,
  StoredExpectation,
} from '../inbox/store/expectation-store.js';
import { HandlerCatalogCache } from '../inbox/store/handler-catalog-cache.js';
import { INBOX_STORE } from '../inbox/store/inbox-store.js';
import type { EventSource, InboxStore } from '../inbox/store/inbox-store.js';
import { boundedError } from '../inbox/store/stored-event.js';
import { Backoff, STORE_BACKOFF } from '../runtime/backoff.js';
import { abortableDelay, withTimeLimit } from '../runtime/deadline.js';
import { PAYMENTS_RUNTIME } from '../runtime/payments-runtime.js';
import type { PaymentsRuntime } from '../runtime/payments-runtime.js';
import { NO_OBSERVERS, Observers } from '../telemetry/observers.js';
import { askService } from './ask-service.js';
import type { AskResult } from './ask-service.js';
import { nextPollInMs, overduePollInMs } from './poll-schedule.js';
import type { ResolvedReconcileOptions } from './reconcile-options.js';

/** Time limit of the calls of one poll, including `find` and `interpret`, in milliseconds. */
const ASK_MS = 20_000;
/** How long a claimed poll is leased, in milliseconds: {@link ASK_MS} and time for the store. */
export const POLL_LEASE_MS = 30_000;
/**
 * After so many polls in a row that ended with their process, the service is asked about the payment only once more: by the
 * last poll before it becomes overdue.
 */
const MAX_LOST = 3;
/** The longest `Retry-After` that a poll obeys, in milliseconds. */
const MAX_RETRY_AFTER_MS = 3_600_000;

/** What {@link Polls.run} tells its caller. */
export interface PollEnd {
  /** Milliseconds until the next poll of the payment; `null` if none is scheduled. */
  readonly nextPollInMs: number | null;
  /** How many milliseconds the service wants no further polls of the company. */
  readonly refusedMs: number;
}

/** Polls the service about expected payments, one payment at a time. */
@Injectable()
export class Polls {
  readonly #logger = new ModuleLogger('PaymentExpectations');
  readonly #throttled: ThrottledLog;

  constructor(
    @Inject(INBOX_STORE) private readonly store: InboxStore,
    @Inject(PAYMENTS_RUNTIME) private readonly runtime: PaymentsRuntime,
    private readonly api: PaymentsApiService,
    private readonly receiver: EventReceiver,
    private readonly catalog: HandlerCatalogCache,
    private readonly observers: Observers = NO_OBSERVERS,
  ) {
    this.#throttled = new ThrottledLog(this.#logger, runtime);
  }

  /**
   * Runs a claimed poll and settles it. If the signal is aborted, releases it. While the store is down, tries again until
   * the lease ends; the poll is then repeated. Never rejects.
   */
  async run(
    claimed: ClaimedPoll,
    options: ResolvedReconcileOptions,
    signal: AbortSignal,
  ): Promise<PollEnd> {
    const { company, reference, transactionId } = claimed.expectation;
    const { observers } = this;
    const info = { company, reference, transactionId };
    try {
      const { nextPollInMs, refusedMs } = await observers.observe(
        { kind: 'poll', ...info },
        () => this.#poll(claimed, options, signal),
        ({ value, durationMs, error, errorCode }) => {
          const result = value?.settled.result ?? 'failed';
          observers.notify('pollEnded', { ...info, result, durationMs });
          const detail = result === 'unknown' ? value!.settled.detail : error;
          return { outcome: result, error: detail, errorCode };
        },
      );
      return { nextPollInMs, refusedMs };
    } catch (error) {
      if (signal.aborted) {
        await this.store.expectations.releasePolls([claimed], [0]).catch(() => {});
      } else {
        const line =
          `A poll of ${nameOf(claimed.expectation)} could not be stored, and is repeated when its lease of ` +
          `${POLL_LEASE_MS} ms ends: ${describeError(error)}`;
        this.#throttled.warn(`failed ${company}`, new LogLine(line, { company }));
      }
      return { nextPollInMs: POLL_LEASE_MS, refusedMs: 0 };
    }
  }

  async #poll(
    claimed: ClaimedPoll,
    options: ResolvedReconcileOptions,
    signal: AbortSignal,
  ): Promise<PollEnd & { readonly settled: SettledPoll }> {
    const { expectation } = claimed;
    const readAt = this.runtime.monotonic();
    const { state, ageMs, lostPolls } = expectation;
    const isLast = () => state === 'waiting' && this.#next(expectation, ageMs) === 'overdue';
    const mayAsk = lostPolls < MAX_LOST || (lostPolls === MAX_LOST && isLast());
    const found = mayAsk ? await this.#ask(expectation, options, signal) : lost(expectation);
    // The result of an aborted poll says nothing about the payment.
    signal.throwIfAborted();
    const elapsedMs = ageMs + this.runtime.monotonic() - readAt;
    const isEvent = found.result === 'event';
    const { retryAfterMs = 0, rateLimited = false } = isEvent ? {} : found;
    const obeyedMs = Math.min(retryAfterMs, MAX_RETRY_AFTER_MS);
    const againInMs =
      found.result === 'unknown' && mayAsk
        ? overduePollInMs(expectation, elapsedMs, this.runtime.random())
        : null;
    let next: PollOutcome['next'] = 'end';
    if (!isEvent && state === 'waiting') next = this.#next(expectation, elapsedMs);
    else if (!isEvent && state === 'overdue') next = againInMs ?? 'end';
    if (typeof next === 'number') next = Math.max(next, obeyedMs);
    const settlement = {
      lease: { seq: claimed.seq, token: claimed.token },
      outcome: { result: found.result, detail: isEvent ? null : found.detail, next, againInMs },
      eventTypes: options.eventTypes,
      keepLost: !mayAsk,
    };
    let event: OwnEvent | null = null;
    if (isEvent) event = pollEvent(found);
    else if (next === 'overdue') event = await this.#overdueEvent(expectation, found.result);
    const settled = await this.#settle(expectation, settlement, event, { readAt, signal });
    if (settled.settled) await this.#report(expectation, settled);
    return {
      settled,
      nextPollInMs: settled.settled ? settled.nextPollInMs : null,
      refusedMs: rateLimited ? obeyedMs : 0,
    };
  }

  /** When the next poll of a waiting expectation is due, if this one has no result. */
  #next(expectation: StoredExpectation, elapsedMs: number): number | 'overdue' {
    const polls = expectation.polls + 1;
    return nextPollInMs(expectation, { polls, elapsedMs }, this.runtime.random());
  }

  async #ask(
    expectation: StoredExpectation,
    options: ResolvedReconcileOptions,
    signal: AbortSignal,
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

  /** The event for `@OnPaymentOverdue` handlers; `null` unless the schedule has ended and any process has one. */
  async #overdueEvent(
    { reference, transactionId, dueBy, createdAt, polls }: StoredExpectation,
    lastResult: PaymentOverdueData['lastResult'],
  ): Promise<OwnEvent | null> {
    const hasHandler = () => this.catalog.matching(OVERDUE_EVENT_TYPE, 'overdue').length > 0;
    if (!hasHandler()) await this.catalog.refresh();
    if (!hasHandler()) return null;
    const data = {
      reference,
      // The summary of the event shows it, so that a search for the order finds the event.
      externalReference: reference,
      transactionId,
      dueBy: dueBy?.toISOString() ?? null,
      createdAt: createdAt.toISOString(),
      // The last poll has ended, and is not stored yet.
      polls: polls + 1,
      lastResult,
    } satisfies PaymentOverdueData & { externalReference: string };
    // A cancelled expectation that was opened again becomes overdue again.
    const id = idOf(OVERDUE_ID, `${reference}:${createdAt.getTime()}`);
    return { id, eventType: OVERDUE_EVENT_TYPE, data, source: 'overdue' };
  }

  /** Settles the poll. While the store is down, tries again until the lease ends, and then rejects. */
  async #settle(
    { company }: StoredExpectation,
    settlement: Omit<PollSettlement, 'event'>,
    event: OwnEvent | null,
    { readAt, signal }: { readonly readAt: number; readonly signal: AbortSignal },
  ): Promise<SettledPoll> {
    const { runtime } = this;
    const { expectations } = this.store;
    const backoff = new Backoff(runtime, STORE_BACKOFF);
    for (;;) {
      try {
        if (event === null) return await expectations.settlePoll({ ...settlement, event: null });
        let settled!: SettledPoll;
        await this.receiver.receiveOwn(this.#verified(company, event), async (incoming) => {
          settled = await expectations.settlePoll({ ...settlement, event: incoming });
          return settled.receipt;
        });
        return settled;
      } catch (error) {
        const waitMs = backoff.nextMs();
        if (signal.aborted || runtime.monotonic() + waitMs > readAt + POLL_LEASE_MS) throw error;
        await abortableDelay(waitMs, runtime, signal);
      }
    }
  }

  #verified(company: string, { source, ...fields }: OwnEvent): VerifiedEvent {
    const timestamp = new Date(this.runtime.now()).toISOString();
    const event: PaymentEvent = { ...fields, timestamp, metadata: {} };
    const raw = Buffer.from(JSON.stringify(event));
    return new VerifiedEvent(company, event, raw, this.runtime.monotonic(), {}, source);
  }

  async #report(before: StoredExpectation, settled: SettledPoll): Promise<void> {
    const { company, contradiction, lastPoll } = before;
    const { result, detail, state, changed, receipt } = settled;
    if (result === 'contradiction' && contradiction === null) {
      const line = `A poll of ${nameOf(before)} contradicts the inbox. ${detail}`;
      this.#logger.error(new LogLine(line, { company }));
    } else if (
      result === 'unknown' &&
      detail !== null &&
      lastPoll?.detail !== boundedError(detail)
    ) {
      const line = `A poll of ${nameOf(before)} gave no result, and is repeated by its schedule. ${detail}`;
      this.#throttled.warn(`unknown ${company}`, new LogLine(line, { company }));
    }
    // The receipt of an event is reported by the receiver.
    if (!changed || !this.observers.active || (state === 'fulfilled' && receipt !== null)) return;
    const { reference } = before;
    try {
      const now = await this.store.expectations.find(company, reference);
      if (now === undefined) return;
      const info = { company, reference, transactionId: now.transactionId };
      if (state === 'overdue') this.observers.notify('expectationOverdue', info);
      if (now.fulfilled === null) return;
      const { by, eventId } = now.fulfilled;
      this.observers.notify('expectationFulfilled', {
        ...info,
        by: by as 'webhook' | 'poll',
        eventId,
      });
    } catch {
      // The store is down: only this report is lost.
    }
  }
}

/** An event of the module itself. */
interface OwnEvent extends Pick<PaymentEvent, 'id' | 'eventType'> {
  readonly data: Readonly<Record<string, unknown>>;
  readonly source: EventSource;
}

function pollEvent({
  transactionId,
  eventType,
  data,
}: Extract<AskResult, { result: 'event' }>): OwnEvent {
  // The colons of the transaction id are escaped, so that no other transaction and type give the same id.
  const name = transactionId.replaceAll('%', '%25').replaceAll(':', '%3A');
  return { id: idOf(POLL_ID, `${name}:${eventType}`), eventType, data, source: 'poll' };
}

function lost({ lostPolls }: StoredExpectation): AskResult {
  const detail =
    `The service was not asked, because the last ${lostPolls} polls of this payment ended with their process. Find out ` +
    'whether "reconcile.interpret" or "reconcile.find" ends the process for it, then poll it with askNow() or sweep().';
  return { result: 'unknown', detail };
}

function nameOf({ reference, company }: StoredExpectation): string {
  return `the expected payment ${reference} (company ${company})`;
}
