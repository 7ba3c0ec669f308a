import { Inject, Injectable } from '@nestjs/common';
import { PaymentsApiError } from '../api/api-error.js';
import type { PaymentTransaction } from '../api/payments-api.js';
import { PaymentsApiService } from '../api/payments-api.service.js';
import type { PaymentsApi } from '../api/payments-api.service.js';
import { ModuleLogger, ThrottledLog } from '../errors/module-log.js';
import { describeError } from '../errors/payments-error.js';
import { OVERDUE_EVENT_TYPE } from '../events/handler-registry.js';
import { isKey, isRecord } from '../events/payment-event.js';
import type { PaymentEvent, PaymentOverdueData } from '../events/payment-event.js';
import {
  EventReceiver,
  idOf,
  OVERDUE_ID,
  POLL_ID,
  VerifiedEvent,
} from '../inbox/receive/event-receiver.js';
import { POLL_HANDLER } from '../inbox/store/expectation-store.js';
import type {
  ClaimedPoll,
  PollOutcome,
  PollSettlement,
  SettledPoll,
  StoredExpectation,
} from '../inbox/store/expectation-store.js';
import { HandlerCatalogCache } from '../inbox/store/handler-catalog-cache.js';
import { INBOX_STORE } from '../inbox/store/inbox-store.js';
import type { EventSource, HandlerDeclaration, InboxStore } from '../inbox/store/inbox-store.js';
import { boundedError } from '../inbox/store/stored-event.js';
import { ClaimLoop } from '../inbox/work/claim-loop.js';
import { InboxWorker } from '../inbox/work/inbox-worker.js';
import type { InboxCompanion } from '../inbox/work/inbox-worker.js';
import { retryUntil, withTimeLimit } from '../runtime/deadline.js';
import { PAYMENTS_RUNTIME } from '../runtime/payments-runtime.js';
import type { PaymentsRuntime } from '../runtime/payments-runtime.js';
import { NO_OBSERVERS, Observers } from '../telemetry/observers.js';
import { nextPollInMs, overduePollInMs, PollLimits } from './poll-schedule.js';
import { RECONCILE_OPTIONS } from './reconcile-options.js';
import type { ResolvedReconcileOptions } from './reconcile-options.js';

/** Maximum number of polls that run in this process at the same time, for all companies together. */
const MAX_RUNNING = 500;
/**
 * Maximum number of polls per claim. The number is small, so that a claim does not delay the storage of received
 * events.
 */
const BATCH = 10;
/**
 * Milliseconds to wait after a claim whose polls were all postponed. During this wait, the store can store received
 * events.
 */
const PACE_MS = 5;
/** How long a suspect poll (see {@link Poller}) is postponed while another suspect poll runs, in milliseconds. */
const SUSPECT_MS = 1000;
/** Time limit of the calls of one poll, including `find` and `interpret`, in milliseconds. */
const ASK_MS = 20_000;
/** How long a claimed poll is leased, in milliseconds: {@link ASK_MS} and the time to store the result. */
const POLL_LEASE_MS = 30_000;
/**
 * Maximum number of consecutive polls of one payment during which the process exited. After this number of polls, the
 * module calls the service for this payment only in the last poll before the payment becomes overdue.
 */
const MAX_LOST = 3;
const MAX_RETRY_AFTER_MS = 3_600_000;

type AskResult =
  | {
      readonly result: 'event';
      readonly transactionId: string;
      readonly eventType: string;
      readonly data: Readonly<Record<string, unknown>>;
    }
  | {
      readonly result: 'pending' | 'unknown';
      /** One line about the reason; `null` if there is none. */
      readonly detail: string | null;
      readonly retryAfterMs?: number;
      /** Whether `retryAfterMs` applies to all polls of the company, because the service responded with 429. */
      readonly rateLimited?: boolean;
    };

interface PollEnd {
  /** Milliseconds until the next poll of the payment; `null` if none is scheduled. */
  readonly nextPollInMs: number | null;
  /**
   * Milliseconds for which no further poll of this company starts, because the service responded with 429 and a
   * `Retry-After`; otherwise 0.
   */
  readonly refusedMs: number;
}

/**
 * Claims the polls that are due, and runs them, within limits for each company. A poll is a suspect if the process
 * exited during the previous poll of the same payment. Each process runs at most one suspect at a time, so that a poll
 * that makes its process crash interrupts few other polls.
 */
@Injectable()
export class Poller implements InboxCompanion {
  readonly #logger = new ModuleLogger('PaymentExpectations');
  readonly #throttled: ThrottledLog;
  readonly #running = new Map<ClaimedPoll, AbortController>();
  readonly #loop: ClaimLoop;
  readonly #limits: PollLimits | null;
  #suspectRuns = false;
  #onEnded: () => void = () => {};

  constructor(
    @Inject(RECONCILE_OPTIONS) private readonly options: ResolvedReconcileOptions | null,
    @Inject(INBOX_STORE) private readonly store: InboxStore,
    @Inject(PAYMENTS_RUNTIME) private readonly runtime: PaymentsRuntime,
    private readonly worker: InboxWorker,
    private readonly api: PaymentsApiService,
    private readonly receiver: EventReceiver,
    private readonly catalog: HandlerCatalogCache,
    private readonly observers: Observers = NO_OBSERVERS,
  ) {
    this.#throttled = new ThrottledLog(this.#logger, runtime);
    this.#limits = options && new PollLimits(options, runtime);
    this.#loop = new ClaimLoop({
      runtime,
      logger: this.#logger,
      active: () => worker.active,
      claim: () => this.#claim(),
      nextDueInMs: () => store.expectations.nextPollInMs(),
      onDue: () => {},
      onNothingDue: () => worker.companionIdle(),
    });
  }

  /** Adds this poller to the worker, if the option `reconcile` is set. Call this method before the worker starts. */
  register(): void {
    if (this.options !== null) this.worker.join(this);
  }

  get declaration(): HandlerDeclaration {
    return { name: POLL_HANDLER, patterns: this.options!.eventTypes };
  }

  get idle(): boolean {
    return this.#running.size === 0 && !this.#loop.busy;
  }

  wake(): void {
    this.#loop.claimSoon();
  }

  wakeIn(ms: number): void {
    if (this.#limits !== null) this.#loop.wakeIn(ms);
  }

  async stop(): Promise<void> {
    await this.#loop.stop();
    if (this.#running.size > 0) await new Promise<void>((resolve) => (this.#onEnded = resolve));
  }

  abandon(): void {
    for (const abort of this.#running.values()) abort.abort();
  }

  async #claim(): Promise<boolean> {
    const limit = Math.min(BATCH, MAX_RUNNING - this.#running.size);
    if (limit <= 0 || !this.worker.active) return false;
    const { expectations } = this.store;
    const claimed = await expectations.claimPolls({ limit, leaseMs: POLL_LEASE_MS });
    const waits = claimed.map((poll) => this.#admit(poll));
    const postponed = claimed.filter((_, index) => waits[index]! > 0);
    for (const [index, poll] of claimed.entries()) if (waits[index] === 0) void this.#run(poll);
    const dueInMs = waits.filter((ms) => ms > 0);
    if (postponed.length > 0) await expectations.releasePolls(postponed, dueInMs);
    if (claimed.length < limit) return false;
    if (postponed.length < limit) return true;
    this.#loop.wakeIn(PACE_MS);
    return false;
  }

  /** Returns 0 if the poll may run now, and otherwise the milliseconds until the poll becomes due again. */
  #admit({ expectation: { company, lostPolls } }: ClaimedPoll): number {
    const isSuspect = lostPolls > 0;
    if (isSuspect && this.#suspectRuns) return SUSPECT_MS;
    const waitMs = this.#limits!.admit(company);
    if (isSuspect && waitMs === 0) this.#suspectRuns = true;
    return waitMs;
  }

  async #run(poll: ClaimedPoll): Promise<void> {
    const { company, lostPolls } = poll.expectation;
    const abort = new AbortController();
    this.#running.set(poll, abort);
    const { nextPollInMs, refusedMs } = await this.poll(poll, abort.signal);
    const wasFull = this.#running.size >= MAX_RUNNING;
    this.#running.delete(poll);
    this.#limits!.ended(company);
    if (refusedMs > 0) this.#limits!.refuse(company, refusedMs);
    if (lostPolls > 0) this.#suspectRuns = false;
    if (nextPollInMs !== null) this.#loop.wakeIn(nextPollInMs);
    if (wasFull) this.#loop.claimSoon();
    if (this.#running.size > 0) return;
    this.#onEnded();
    this.worker.companionIdle();
  }

  /**
   * Runs a claimed poll and stores its result. If the signal is aborted, releases the poll, so that it is due again.
   * While the store is down, retries to store the result until the lease of the poll ends; after that, the poll is
   * repeated. Never rejects.
   */
  async poll(claimed: ClaimedPoll, signal: AbortSignal): Promise<PollEnd> {
    const { company, reference, transactionId } = claimed.expectation;
    const info = { company, reference, transactionId };
    try {
      return await this.observers.observe(
        { kind: 'poll', ...info },
        () => this.#poll(claimed, signal),
        ({ value, durationMs, error, errorCode }) => {
          const result = value?.settled.result ?? 'failed';
          this.observers.notify('pollEnded', { ...info, result, durationMs });
          const detail = result === 'unknown' ? value!.settled.detail : error;
          return { outcome: result, error: detail, errorCode };
        },
      );
    } catch (error) {
      if (signal.aborted) {
        await this.store.expectations.releasePolls([claimed], [0]).catch(() => {});
      } else {
        const line =
          `The result of a poll of ${nameOf(claimed.expectation)} could not be stored. The poll is repeated when its ` +
          `lease of ${POLL_LEASE_MS} ms ends. ${describeError(error)}`;
        this.#throttled.warn(`failed ${company}`, line, { company });
      }
      return { nextPollInMs: POLL_LEASE_MS, refusedMs: 0 };
    }
  }

  async #poll(
    claimed: ClaimedPoll,
    signal: AbortSignal,
  ): Promise<PollEnd & { readonly settled: SettledPoll }> {
    const { expectation } = claimed;
    const readAt = this.runtime.monotonic();
    const { company, state, ageMs, lostPolls } = expectation;
    const isLast = () => state === 'waiting' && this.#next(expectation, ageMs) === 'overdue';
    const mayAsk = lostPolls < MAX_LOST || (lostPolls === MAX_LOST && isLast());
    const found = mayAsk ? await this.#ask(expectation, signal) : lost(expectation);
    // The result of an aborted poll does not show the state of the payment.
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
      eventTypes: this.options!.eventTypes,
      keepLost: !mayAsk,
    };
    let event: VerifiedEvent | null = null;
    if (isEvent) event = this.#pollEvent(company, found);
    else if (next === 'overdue') event = await this.#overdueEvent(expectation, found.result);
    const settled = await this.#settle(settlement, event, readAt + POLL_LEASE_MS, signal);
    if (settled.settled) await this.#report(expectation, settled);
    return {
      settled,
      nextPollInMs: settled.settled ? settled.nextPollInMs : null,
      refusedMs: rateLimited ? obeyedMs : 0,
    };
  }

  /** Returns the milliseconds until the next poll, or `overdue`, for the case that the current poll finds no event. */
  #next(expectation: StoredExpectation, elapsedMs: number): number | 'overdue' {
    const polls = expectation.polls + 1;
    return nextPollInMs(expectation, { polls, elapsedMs }, this.runtime.random());
  }

  async #ask(expectation: StoredExpectation, signal: AbortSignal): Promise<AskResult> {
    const late = new AbortController();
    const asked = this.#askService(expectation, AbortSignal.any([signal, late.signal]));
    const timeUp = new Error(`The poll took longer than ${ASK_MS} ms.`);
    try {
      return await withTimeLimit(asked, ASK_MS, this.runtime, () => timeUp);
    } catch (error) {
      if (error !== timeUp) throw error;
      late.abort(timeUp);
      return unknown(timeUp.message);
    }
  }

  /**
   * Reads the transaction of an expected payment from the service, and lets `interpret` decide its meaning. The result
   * is `unknown` if the call to the service fails, or if `find` or `interpret` throws or returns an invalid value.
   *
   * @throws what the store throws if it cannot attach the transaction that `find` returned.
   */
  async #askService(expectation: StoredExpectation, signal: AbortSignal): Promise<AskResult> {
    const { company, reference } = expectation;
    const { find, interpret, eventTypes } = this.options!;
    const api = this.api.forCompany(company);
    let { transactionId } = expectation;
    if (transactionId === null) {
      const found = await findTransaction(find, reference, api, signal);
      if (typeof found !== 'string') return found;
      const attached = await this.store.expectations.attach(company, reference, found);
      if (attached !== 'attached') {
        return unknown(
          'The transaction that "reconcile.find" found was not attached: another expectation has its id, or the expectation ' +
            'was cancelled or got another id meanwhile.',
        );
      }
      transactionId = found;
    }
    let transaction: PaymentTransaction;
    try {
      transaction = await api.getTransaction(transactionId, { signal, obeyRetryAfter: true });
    } catch (error) {
      return failed(error, '');
    }
    try {
      const payment = Object.freeze({ company, reference, transactionId });
      const meaning: unknown = await interpret(transaction, payment);
      return toAskResult(meaning, transactionId, eventTypes);
    } catch (error) {
      return unknown(`"reconcile.interpret" failed: ${describeError(error)}`);
    }
  }

  /** Returns the event for `@OnPaymentOverdue` handlers; `null` if no process has registered such a handler. */
  async #overdueEvent(
    { company, reference, transactionId, dueBy, createdAt, polls }: StoredExpectation,
    lastResult: PaymentOverdueData['lastResult'],
  ): Promise<VerifiedEvent | null> {
    const hasHandler = () => this.catalog.matching(OVERDUE_EVENT_TYPE, 'overdue').length > 0;
    if (!hasHandler()) await this.catalog.refresh();
    if (!hasHandler()) return null;
    const data = {
      reference,
      // The summary of the event contains this field, so that a search for the order finds the event.
      externalReference: reference,
      transactionId,
      dueBy: dueBy?.toISOString() ?? null,
      createdAt: createdAt.toISOString(),
      // The last poll has ended, but its result is not stored yet, so `polls` does not include it.
      polls: polls + 1,
      lastResult,
    } satisfies PaymentOverdueData & { externalReference: string };
    // The id contains the creation time, because a cancelled expectation that was opened again can become overdue
    // again.
    const id = idOf(OVERDUE_ID, `${reference}:${createdAt.getTime()}`);
    return this.#verified(company, 'overdue', { id, eventType: OVERDUE_EVENT_TYPE, data });
  }

  /**
   * Stores the result of a poll. While the store is down, retries until the lease of the poll ends, and then rejects.
   */
  async #settle(
    settlement: Omit<PollSettlement, 'event'>,
    event: VerifiedEvent | null,
    endsAt: number,
    signal: AbortSignal,
  ): Promise<SettledPoll> {
    const { expectations } = this.store;
    const settle = async (): Promise<SettledPoll> => {
      if (event === null) return expectations.settlePoll({ ...settlement, event: null });
      let settled!: SettledPoll;
      await this.receiver.receiveOwn(event, async (incoming) => {
        settled = await expectations.settlePoll({ ...settlement, event: incoming });
        return settled.receipt;
      });
      return settled;
    };
    return retryUntil(endsAt, settle, this.runtime, signal);
  }

  #pollEvent(
    company: string,
    { transactionId, eventType, data }: Extract<AskResult, { result: 'event' }>,
  ): VerifiedEvent {
    // The colons of the transaction id are escaped, so that no other transaction and type give the same id.
    const name = transactionId.replaceAll('%', '%25').replaceAll(':', '%3A');
    const id = idOf(POLL_ID, `${name}:${eventType}`);
    return this.#verified(company, 'poll', { id, eventType, data });
  }

  #verified(
    company: string,
    source: EventSource,
    fields: Pick<PaymentEvent, 'id' | 'eventType' | 'data'>,
  ): VerifiedEvent {
    const timestamp = new Date(this.runtime.now()).toISOString();
    const event = { ...fields, timestamp, metadata: {} };
    const raw = Buffer.from(JSON.stringify(event));
    return new VerifiedEvent(company, event, raw, this.runtime.monotonic(), {}, source);
  }

  async #report(before: StoredExpectation, settled: SettledPoll): Promise<void> {
    const { company, contradiction, lastPoll } = before;
    const { result, detail, state, changed, receipt } = settled;
    if (result === 'contradiction' && contradiction === null) {
      const line = `A poll of ${nameOf(before)} contradicts the inbox. ${detail}`;
      this.#logger.error(line, { company });
    } else if (
      result === 'unknown' &&
      detail !== null &&
      lastPoll?.detail !== boundedError(detail)
    ) {
      const line = `A poll of ${nameOf(before)} gave no result, and is repeated by its schedule. ${detail}`;
      this.#throttled.warn(`unknown ${company}`, line, { company });
    }
    // The receiver reports the receipt of an event.
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
      // The store is down. Only this report is lost.
    }
  }
}

function lost({ lostPolls }: StoredExpectation): AskResult {
  const detail =
    `The service was not asked, because the process exited during each of the last ${lostPolls} polls of this ` +
    'payment. Find out whether "reconcile.interpret" or "reconcile.find" makes the process exit for this payment. Then ' +
    'poll it with askNow() or sweep().';
  return unknown(detail);
}

function nameOf({ reference, company }: StoredExpectation): string {
  return `the expected payment ${reference} (company ${company})`;
}

async function findTransaction(
  find: ResolvedReconcileOptions['find'],
  reference: string,
  api: PaymentsApi,
  signal: AbortSignal,
): Promise<string | AskResult> {
  if (find === null || find === undefined) {
    return unknown('No transaction id is attached, and "reconcile.find" is not set.');
  }
  try {
    const found: unknown = await find(reference, api, { signal });
    if (found === null || found === undefined) {
      return unknown('"reconcile.find" found no transaction.');
    }
    if (isKey(found)) return found;
    return unknown(
      `"reconcile.find" must return a transaction id of 1 to 255 characters, or null; it returned ${kindOf(found)}.`,
    );
  } catch (error) {
    return failed(error, '"reconcile.find" failed: ');
  }
}

/** Checks the return value of `interpret`. May throw if the value has getters that throw. */
function toAskResult(
  meaning: unknown,
  transactionId: string,
  eventTypes: readonly string[],
): AskResult {
  if (meaning === 'pending') return { result: 'pending', detail: null };
  if (meaning === 'unknown') return unknown(null);
  if (!isRecord(meaning)) {
    return unknown(
      `"reconcile.interpret" must return "pending", "unknown" or { eventType, data }; it returned ${kindOf(meaning)}.`,
    );
  }
  const { eventType, data = {} } = meaning;
  if (typeof eventType !== 'string' || !eventTypes.includes(eventType)) {
    return unknown(
      `"reconcile.interpret" returned an event type that is not in "reconcile.eventTypes" (${eventTypes.join(', ')}). ` +
        'Add it there.',
    );
  }
  // The module uses the data as the inbox will store it: what remains after a conversion to JSON and back.
  const copy: unknown = isRecord(data) ? JSON.parse(JSON.stringify(data)) : data;
  if (!isRecord(copy)) {
    return unknown(
      `"reconcile.interpret" must return an object as "data"; as JSON, it is ${kindOf(copy)}.`,
    );
  }
  const { transactionId: own = transactionId } = copy;
  if (own !== transactionId) {
    return unknown('"reconcile.interpret" returned "data" of another transaction.');
  }
  return { result: 'event', transactionId, eventType, data: { ...copy, transactionId } };
}

function unknown(detail: string | null): AskResult {
  return { result: 'unknown', detail };
}

function failed(error: unknown, what: string): AskResult {
  const result = unknown(what + describeError(error));
  if (!(error instanceof PaymentsApiError) || error.retryAfterMs === undefined) return result;
  const rateLimited = error.code === 'rate_limited';
  return { ...result, retryAfterMs: error.retryAfterMs, rateLimited } as AskResult;
}

/** The kind of a value, for a message that must not contain the value. */
function kindOf(value: unknown): string {
  if (value === null) return 'null';
  return Array.isArray(value) ? 'an array' : `a value of type ${typeof value}`;
}
