import { createHash } from 'node:crypto';
import { inspect } from 'node:util';
import { Inject, Injectable } from '@nestjs/common';
import { ModuleLogger, ThrottledLog } from '../../errors/module-log.js';
import { shown } from '../../errors/option-checks.js';
import { describeError, PaymentsError } from '../../errors/payments-error.js';
import { isObject, TEST_EVENT_TYPE, transactionOf } from '../../events/payment-event.js';
import type { PaymentEvent } from '../../events/payment-event.js';
import { withTimeLimit } from '../../runtime/deadline.js';
import { PAYMENTS_RUNTIME } from '../../runtime/payments-runtime.js';
import type { PaymentsRuntime } from '../../runtime/payments-runtime.js';
import { NO_OBSERVERS, Observers, validTraceparent } from '../../telemetry/observers.js';
import type { ObserverInfo } from '../../telemetry/observers.js';
import { StoredBodies } from '../store/body-codec.js';
import { HandlerCatalogCache } from '../store/handler-catalog-cache.js';
import { INBOX_STORE } from '../store/inbox-store.js';
import type {
  ClaimedDelivery,
  EventSource,
  InboxStore,
  IncomingEvent,
  StoredSummary,
  StoreReceipt,
} from '../store/inbox-store.js';
import type { EventSummary } from '../store/stored-event.js';
import { InboxWorker } from '../work/inbox-worker.js';
import type { OutcomeWatch } from '../work/inbox-worker.js';
import { MAX_AGE_MS, RECEIVE_OPTIONS } from './receive-options.js';
import type { ResolvedReceiveOptions } from './receive-options.js';

/** Prefixes of the ids of events that the module itself creates. */
export const POLL_ID = 'poll:';
export const OVERDUE_ID = 'overdue:';
/** Prefix for an id of the service that begins with a reserved prefix; see {@link VerifiedEvent.storedId}. */
const SERVICE_ID = 'service:';

const RESERVED_ID = new RegExp(`^(?:${[POLL_ID, OVERDUE_ID, SERVICE_ID].join('|')})`);

export function idOf(prefix: string, text: string): string {
  const id = prefix + text;
  return id.length <= 255 ? id : prefix + createHash('sha256').update(text).digest('hex');
}

/** Whether a value is a valid reference of an expected payment. */
export function isReference(value: unknown): value is string {
  return typeof value === 'string' && /^[^\p{Cc}]{1,200}$/u.test(value);
}

/**
 * An event from a webhook request whose signature is valid, or from a poll. `WebhookGuard` creates verified events, and
 * `PaymentInbox.receive()` stores them. Neither `JSON.stringify` nor `util.inspect` shows the payload of a verified
 * event.
 */
export class VerifiedEvent {
  readonly #event: PaymentEvent;
  readonly #raw: Buffer;
  readonly #headers: Readonly<Record<string, string>>;

  constructor(
    /** Id of the company whose secret signed the webhook request. */
    readonly company: string,
    event: PaymentEvent,
    raw: Buffer,
    /**
     * When the webhook request arrived, in milliseconds on the runtime's monotonic clock. The deadline counts from this
     * time.
     */
    readonly arrivedAt: number,
    headers: Readonly<Record<string, string>> = {},
    /** How the event was received. */
    readonly source: EventSource = 'webhook',
  ) {
    this.#event = event;
    this.#raw = raw;
    this.#headers = Object.freeze({ ...headers });
  }

  /** The parsed envelope. */
  get event(): PaymentEvent {
    return this.#event;
  }

  /**
   * The id under which the inbox stores the event. Usually, this is the service's id of the event. If the service's id
   * begins with a prefix that the module uses for its own events, such as `poll:`, the inbox adds the prefix
   * `service:`. Otherwise, the inbox could treat an event of the service and an event of the module as duplicates.
   */
  get storedId(): string {
    const { id } = this.#event;
    return this.source === 'webhook' && RESERVED_ID.test(id) ? idOf(SERVICE_ID, id) : id;
  }

  /** The body, byte for byte as it was signed. */
  get raw(): Buffer {
    return this.#raw;
  }

  /** The stored headers of the webhook request; see `StoredEvent.headers`. The signature does not cover the headers. */
  get headers(): Readonly<Record<string, string>> {
    return this.#headers;
  }

  toJSON(): { company: string; id: string; eventType: string } {
    return { company: this.company, id: this.#event.id, eventType: this.#event.eventType };
  }

  [inspect.custom](): string {
    return `VerifiedEvent ${inspect(this.toJSON())}`;
  }
}

/**
 * If the handler catalog changes while the receiver stores an event, the receiver stores the event again, at most this
 * many times.
 */
const MAX_CATALOG_CHANGES = 10;

interface ReceivedEvent {
  readonly event: IncomingEvent;
  readonly receipt: StoreReceipt;
}

/** Stores an event, or resolves with `null` if the event must not be stored. */
type StoreEvent = (event: IncomingEvent) => Promise<StoreReceipt | null>;

/** The result of `PaymentInbox.receive()`. */
export interface InboxReceipt {
  /**
   * - `stored`: the event is new and stored durably; its handlers run in the background.
   * - `handled`: the event is new and its handlers have succeeded. Only an inbox that is not durable returns this
   *   status.
   * - `duplicate`: the event is a copy of a stored event, or a second event of a transaction (see
   *   `oncePerTransaction`); handlers that have succeeded do not run again.
   * - `unhandled`: the event is new and stored; no handler takes its type.
   * - `stale`: the event is new and stored, but older than `webhook.maxAgeMs`; its handlers run only after a redrive.
   */
  readonly status: 'stored' | 'handled' | 'duplicate' | 'unhandled' | 'stale';
  /** Id of the stored event. For a duplicate, the id of the event that was stored first. */
  readonly id: string;
}

/**
 * The error that `PaymentInbox.receive()` throws if the event is neither stored durably nor handled. `receive()` throws
 * no other error. `code` is `inbox_unavailable`, `inbox_full`, `handlers_failed` or `deadline_passed`.
 *
 * If a controller throws this error, the response is 503, so that the sender sends the event again. Nest's own
 * exception filter, Express and Fastify read the getters of this class, as they do with errors of `http-errors`.
 */
export class PaymentInboxError extends PaymentsError {
  override readonly name = 'PaymentInboxError';

  get statusCode(): number {
    return 503;
  }

  get status(): number {
    return 503;
  }

  /**
   * Whether the message may be sent to the client: always, because it contains nothing from the payload or the
   * handlers.
   */
  get expose(): boolean {
    return true;
  }
}

/** Stores verified events, and runs their deliveries at once if the handlers have free slots in this process. */
@Injectable()
export class EventReceiver {
  readonly #logger = new ModuleLogger('PaymentInbox');
  readonly #throttled: ThrottledLog;

  constructor(
    @Inject(INBOX_STORE) private readonly store: InboxStore,
    @Inject(RECEIVE_OPTIONS) private readonly options: ResolvedReceiveOptions,
    @Inject(MAX_AGE_MS) private readonly maxAgeMs: number,
    @Inject(PAYMENTS_RUNTIME) private readonly runtime: PaymentsRuntime,
    private readonly catalog: HandlerCatalogCache,
    private readonly worker: InboxWorker,
    private readonly bodies: StoredBodies,
    private readonly observers: Observers = NO_OBSERVERS,
  ) {
    this.#throttled = new ThrottledLog(this.#logger, runtime);
  }

  /**
   * See `PaymentInbox.receive()`. Counts the webhook request as accepted or rejected.
   *
   * @param parsed the parsed event. No other code may use this object, because the first handler may get and change it
   */
  async receive(
    verified: VerifiedEvent,
    parsed: PaymentEvent | null = null,
  ): Promise<InboxReceipt> {
    const { company, event } = verified;
    try {
      const receipt = await this.receiveMessage(verified, parsed);
      this.observers.facts.accepted(company);
      return receipt;
    } catch (error) {
      const { code, message } = error as PaymentInboxError;
      this.observers.requestRejected({ code, message, company, eventId: event.id });
      throw error;
    }
  }

  /**
   * Receives the event of a message from an engine. Works like {@link receive}, but does not count a webhook request.
   */
  async receiveMessage(
    verified: VerifiedEvent,
    parsed: PaymentEvent | null,
  ): Promise<InboxReceipt> {
    const { deadlineMs } = this.options;
    const leftMs = verified.arrivedAt + deadlineMs - this.runtime.monotonic();
    const deadline = { passed: false, onPassed: () => {} };
    const { durable } = this.store.capabilities;
    // The result is never `null`, because #receive() stores each event.
    const store = () =>
      this.#observed(verified, (one) => this.#receive(one, parsed)) as Promise<ReceivedEvent>;
    try {
      const received = durable ? store() : this.#handled(verified, deadline, store);
      const inTime = await withTimeLimit(received, leftMs, this.runtime, () => {
        deadline.passed = true;
        deadline.onPassed();
        return new PaymentsError(
          'deadline_passed',
          `The event was not ${durable ? 'stored' : 'handled'} within ${deadlineMs} ms after it arrived. This process ` +
            'continues to work on it. Send the event again: the copy waits for the result.',
        );
      });
      return receiptOf(inTime, durable ? 'stored' : 'handled');
    } catch (error) {
      throw this.#toInboxError(error, verified);
    }
  }

  /**
   * Receives an event with an inbox that is not durable. Resolves only when the handlers have succeeded, because such
   * an inbox loses its events when the process exits. If the event is a copy, runs the handlers that have not succeeded
   * yet.
   */
  async #handled(
    { company, storedId }: VerifiedEvent,
    deadline: { passed: boolean; onPassed: () => void },
    receive: () => Promise<ReceivedEvent>,
  ): Promise<ReceivedEvent> {
    if (!this.worker.working) {
      throw new PaymentsError(
        'inbox_unavailable',
        'The application is closing or has not started, and its inbox is in memory: send the event again.',
      );
    }
    // The watch starts before the event is stored, so that the watch records every attempt.
    let watch = this.worker.outcomes.watch(company, storedId);
    try {
      const received = await receive();
      const { id, outcome } = received.receipt;
      if (id !== storedId) {
        watch.end();
        watch = this.worker.outcomes.watch(company, id);
      }
      deadline.onPassed = () => watch.abandon();
      if (deadline.passed) watch.abandon();
      const handlers =
        outcome === 'stored' ? received.event.handlers : await this.#runAgain(company, id, watch);
      const failed = await watch.failures(handlers);
      if (failed.length > 0) {
        throw new PaymentsError(
          'handlers_failed',
          `${failed.length} of ${handlers.length} handlers have not succeeded yet; see the log for ` +
            'the errors. Only these handlers run again when the event is sent again.',
        );
      }
      return received;
    } finally {
      watch.end();
    }
  }

  /** Runs the handlers that have not succeeded for a stored event again. Resolves with the names of these handlers. */
  async #runAgain(company: string, id: string, watch: OutcomeWatch): Promise<readonly string[]> {
    const stored = await this.store.find(company, id);
    if (stored === undefined) {
      throw new PaymentsError(
        'inbox_unavailable',
        `The inbox was full, and deleted the stored event ${id} while a copy of it arrived. Send the event again.`,
      );
    }
    const handlers = stored.deliveries
      .filter(({ state }) => state !== 'done' && state !== 'skipped')
      .map(({ handler }) => handler);
    // A handler whose attempt has ended since the watch started does not run again for this copy.
    const redriven = handlers.filter((handler) => !watch.hasEnded(handler));
    if (redriven.length > 0) {
      const selection = { company, id, handlers: redriven };
      await this.store.redrive([selection], { force: false, dueInMs: [0] });
    }
    this.worker.wake();
    return handlers;
  }

  #toInboxError(error: unknown, { event, company }: VerifiedEvent): PaymentInboxError {
    if (error instanceof PaymentsError) return new PaymentInboxError(error.code, error.message);
    this.#throttled.error(
      'store',
      () =>
        `Event ${event.id} (company ${company}) could not be stored: ${describeError(error)}. The response is 503, ` +
        'so that the sender sends the event again.',
      { company, id: event.id },
    );
    return new PaymentInboxError(
      'inbox_unavailable',
      'The payment inbox could not store the event; see the log for the error.',
    );
  }

  /**
   * Receives an event of the module itself, such as an event that a poll found. Does not wait for the handlers, even if
   * the store is not durable, because the worker retries them. If `store` throws, the event may have been stored.
   */
  async receiveOwn(verified: VerifiedEvent, store: StoreEvent): Promise<void> {
    await this.#observed(verified, store);
  }

  #observed(verified: VerifiedEvent, receive: StoreEvent): Promise<ReceivedEvent | null> {
    const { observers } = this;
    if (!observers.active) return this.#store(verified, receive, null);
    return observeReceipt(verified, observers, (own) => this.#store(verified, receive, own));
  }

  /** @param traceparent the trace context of the span of the receipt; `null` without a span */
  async #store(
    verified: VerifiedEvent,
    receive: StoreEvent,
    traceparent: string | null,
  ): Promise<ReceivedEvent | null> {
    const { company, event, storedId, raw } = verified;
    // The spans of the attempts link to the span of the receipt.
    const headers = traceparent === null ? verified.headers : { ...verified.headers, traceparent };
    const summary = summaryOf(event, this.options.summary, this.#throttled);
    const stored = await this.bodies.encode(raw, { company, id: storedId });
    for (let tries = 0; tries <= MAX_CATALOG_CHANGES; tries += 1) {
      const incoming = this.#incoming(verified, { raw: stored, headers, summary });
      const receipt = await receive(incoming);
      if (receipt === null) return null;
      if (receipt.outcome !== 'outdated') {
        const received = await this.#compared({ event: incoming, receipt }, raw);
        this.#logReceipt(received);
        if (receipt.pending) this.worker.wake(incoming.handlers);
        return received;
      }
      await this.catalog.refresh();
    }
    throw new PaymentsError(
      'inbox_unavailable',
      `The event was not stored, because the catalog of handlers changed ${MAX_CATALOG_CHANGES} times during the ` +
        'attempts to store it. Send the event again.',
    );
  }

  #incoming(
    { company, event, storedId, source }: VerifiedEvent,
    { raw, headers, summary }: Pick<IncomingEvent, 'raw' | 'headers' | 'summary'>,
  ): IncomingEvent {
    const { eventType, timestamp } = event;
    const { externalReference } = event.data;
    const { catalog, options } = this;
    const stale = isStale(event, this.runtime.now(), this.maxAgeMs);
    const polled = options.polled.has(eventType) || catalog.polledTypes.includes(eventType);
    return {
      company,
      id: storedId,
      eventType,
      occurredAt: new Date(timestamp),
      orderingKey: transactionOf(event),
      oncePerTransaction: polled || options.oncePerTransaction.has(eventType),
      raw,
      headers,
      stale,
      handlers: stale ? [] : catalog.matching(eventType, source),
      catalogVersion: catalog.current.version,
      assign: null,
      source,
      reference: isReference(externalReference) ? externalReference : null,
      summary,
      // A stale event fulfils no expectation: no handler runs for it, so the expected payment still needs another
      // event.
      fulfils: polled && !stale,
    };
  }

  async #receive(unassigned: IncomingEvent, parsed: PaymentEvent | null): Promise<StoreReceipt> {
    const reservation = this.worker.reserve(unassigned.handlers);
    const assign = reservation && {
      workerId: reservation.workerId,
      handlers: reservation.handlers,
    };
    const event = assign ? { ...unassigned, assign } : unassigned;
    // `null` means that it is unknown whether deliveries were assigned.
    let assigned: readonly ClaimedDelivery[] | null = null;
    try {
      const [receipt] = (await this.store.receive([event])) as [StoreReceipt];
      const { raw, eventType, headers } = event;
      const traced = { traceparent: headers['traceparent'] ?? null, eventType };
      assigned = receipt.claimed.map((delivery) => ({ ...delivery, raw, traced }));
      return receipt;
    } catch (error) {
      if (error instanceof PaymentsError && error.code === 'inbox_full') assigned = [];
      throw error;
    } finally {
      reservation?.start(assigned, parsed);
    }
  }

  /**
   * Replaces the outcome `conflict` by `duplicate`, unless the event is from a webhook request and its body differs
   * from the decoded body of the stored event.
   */
  async #compared(received: ReceivedEvent, body: Buffer): Promise<ReceivedEvent> {
    const { event, receipt } = received;
    if (receipt.outcome !== 'conflict') return received;
    // Each poll creates a new body for the same event, so only the body of a webhook request can conflict.
    const find = () => this.store.find(event.company, event.id);
    const isConflict = event.source === 'webhook' && (await this.bodies.conflicts(body, find));
    return isConflict ? received : { event, receipt: { ...receipt, outcome: 'duplicate' } };
  }

  #logReceipt({ receipt: { outcome, id: storedId }, event }: ReceivedEvent): void {
    const { id, company, eventType } = event;
    if (outcome === 'conflict') {
      this.#logger.error(
        `Event ${id} (company ${company}) was received again with another body. The inbox keeps the first ` +
          'body and does not handle the second: ask the service which body is right.',
        { company, id },
      );
    } else if (outcome !== 'stored') {
      // It is normal that a poll and a webhook request contain the same event, so such a copy is not logged.
      const isPoll = event.source !== 'webhook' || storedId.startsWith(POLL_ID);
      if (storedId !== id && !isPoll) this.#logRepeat(storedId, event);
    } else if (eventType === TEST_EVENT_TYPE) {
      const line = `Test event ${id} of company ${company} arrived and its signature is valid.`;
      this.#logger.log(line, { company, id });
    } else if (event.stale) {
      this.#logStale(event);
    } else if (event.handlers.length === 0) this.#logUnhandled(event);
  }

  #logRepeat(first: string, { id, company, eventType }: IncomingEvent): void {
    this.#throttled.warn(
      `repeated ${eventType} of company ${company}`,
      () =>
        `Event ${id} (company ${company}) of type "${eventType}" has the transaction of event ${first}, and ` +
        '"oncePerTransaction" contains this type. The second event was not handled; its id is stored with the first event. ' +
        'If the service sends several events of this type per transaction, remove the type from "oncePerTransaction".',
      { company, id },
    );
  }

  #logStale({ company, id, eventType, occurredAt }: IncomingEvent): void {
    this.#throttled.warn(
      `stale ${eventType}`,
      () =>
        `Event ${id} (company ${company}) of type "${eventType}" is from ${occurredAt.toISOString()}, which is longer ago ` +
        `than "webhook.maxAgeMs" (${this.maxAgeMs} ms) allows. It may be a replay of an event whose id was deleted, so it ` +
        'is stored as stale and no handler runs. If the event is only late, redrive it. If events can be this late, raise ' +
        '"webhook.maxAgeMs" and, with a durable inbox, "worker.retainIdsMs".',
      { company, id },
    );
  }

  #logUnhandled({ id, company, eventType }: IncomingEvent): void {
    const line = (): string => {
      const similar = this.catalog.similar(eventType);
      const hint =
        similar === undefined ? '' : ` Did you mean "${similar}", which a handler takes?`;
      return (
        `No handler takes the event type "${eventType}", so event ${id} (company ${company}) is stored as ` +
        `unhandled.${hint} Once a handler takes the type, redrive the event.`
      );
    };
    this.#throttled.warn(`unhandled ${eventType}`, line, { company, id });
  }
}

function receiptOf({ receipt, event }: ReceivedEvent, safe: 'stored' | 'handled'): InboxReceipt {
  const { id, outcome } = receipt;
  if (outcome !== 'stored') return { id, status: 'duplicate' };
  if (event.stale) return { id, status: 'stale' };
  return { id, status: event.handlers.length === 0 ? 'unhandled' : safe };
}

/**
 * An event is stale if it is so old that the inbox may already have deleted the id of an earlier copy. A `webhook.test`
 * event is never stale, because its replay changes no payment.
 */
export function isStale(
  { eventType, timestamp }: Pick<PaymentEvent, 'eventType' | 'timestamp'>,
  nowMs: number,
  maxAgeMs: number,
): boolean {
  return nowMs - Date.parse(timestamp) > maxAgeMs && eventType !== TEST_EVENT_TYPE;
}

function observeReceipt(
  { company, event, headers, source }: VerifiedEvent,
  observers: Observers,
  store: (traceparent: string | null) => Promise<ReceivedEvent | null>,
): Promise<ReceivedEvent | null> {
  const facts = {
    company,
    eventId: event.id,
    eventType: event.eventType,
    transactionId: transactionOf(event),
    source,
    occurredAtMs: Date.parse(event.timestamp),
  };
  const traceparent = validTraceparent(headers['traceparent']);
  return observers.observe(
    { kind: 'receive', traceparent, ...facts },
    store,
    ({ value: received, durationMs, error, errorCode }) => {
      if (!received) return { outcome: error === null ? 'not stored' : 'failed', error, errorCode };
      const outcome = notify(received, { ...facts, durationMs }, observers);
      return { outcome, error, errorCode };
    },
  );
}

function notify(
  { receipt, event }: ReceivedEvent,
  info: Omit<ObserverInfo['eventReceived'], 'status' | 'handlers'>,
  observers: Observers,
): string {
  const { company } = info;
  let outcome: ObserverInfo['eventReceived']['status'] | ObserverInfo['eventDuplicate']['reason'];
  if (receipt.outcome === 'stored') {
    outcome = event.stale ? 'stale' : event.handlers.length > 0 ? 'stored' : 'unhandled';
    const handlers = Object.freeze([...event.handlers]);
    observers.notify('eventReceived', { ...info, status: outcome, handlers });
  } else {
    if (receipt.outcome === 'conflict') outcome = 'conflict';
    else outcome = receipt.id === event.id ? 'copy' : 'transaction';
    observers.notify('eventDuplicate', { ...info, storedId: receipt.id, reason: outcome });
  }
  for (const { reference, transactionId, by } of receipt.fulfilled) {
    const expectation = { company, reference, transactionId, eventId: receipt.id };
    observers.notify('expectationFulfilled', { ...expectation, by: by as 'webhook' | 'poll' });
  }
  return outcome;
}

const LENGTHS = { reference: 200, amount: 40, currency: 10 };

/** Never throws: if the application's function fails, the event has no summary, and nothing else changes. */
export function summaryOf(
  event: PaymentEvent,
  option: ResolvedReceiveOptions['summary'],
  log: ThrottledLog,
): StoredSummary | null {
  if (option === null) return null;
  const failed = (why: string): null => {
    const line = `The function "summary" failed, so lists show an event without its summary: ${why}.`;
    log.warn('summary', line);
    return null;
  };
  try {
    // The function gets a copy, because it must not change the keys under which the event is stored.
    const summary = option === undefined ? defaultSummary(event) : option(structuredClone(event));
    if (summary === null || summary === undefined) return null;
    if (!isObject(summary)) return failed(`it returned ${shown(summary)}`);
    if (typeof (summary as { then?: unknown }).then === 'function') {
      // Without a listener, a rejection would make the process exit.
      Promise.resolve(summary).catch(() => {});
      return failed('it returned a promise');
    }
    const { reference, amount, currency }: EventSummary = summary;
    const isNumber = typeof amount === 'number' && Number.isFinite(amount);
    return {
      reference: bounded('reference', reference),
      amount: bounded('amount', isNumber ? String(amount) : amount),
      currency: bounded('currency', currency),
    };
  } catch (error) {
    return failed(describeError(error));
  }
}

function defaultSummary({ data }: PaymentEvent): EventSummary {
  const { externalReference, accountReference, amount, currency } = data;
  const reference = isText(externalReference) ? externalReference : accountReference;
  return { reference, amount, currency } as EventSummary;
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}

/**
 * Cuts a text to the maximum length of its field. If the cut divides a character of two UTF-16 units, the remaining
 * half becomes U+FFFD. A null character also becomes U+FFFD.
 */
function bounded(field: keyof typeof LENGTHS, value: unknown): string | null {
  return isText(value)
    ? value.slice(0, LENGTHS[field]).toWellFormed().replaceAll('\0', '\uFFFD')
    : null;
}
