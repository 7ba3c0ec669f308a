import { Inject, Injectable } from '@nestjs/common';
import { LogLine, ModuleLogger, ThrottledLog } from '../../errors/module-log.js';
import { describeError, PaymentsError } from '../../errors/payments-error.js';
import { TEST_EVENT_TYPE } from '../../events/payment-event.js';
import type { PaymentEvent } from '../../events/payment-event.js';
import { PAYMENTS_RUNTIME } from '../../runtime/payments-runtime.js';
import type { PaymentsRuntime } from '../../runtime/payments-runtime.js';
import { withTimeLimit } from '../../runtime/deadline.js';
import { NO_OBSERVERS, Observers } from '../../telemetry/observers.js';
import { MAX_AGE_MS, RECEIVE_OPTIONS } from './receive-options.js';
import type { ResolvedReceiveOptions } from './receive-options.js';
import { StoredBodies } from '../store/body-codec.js';
import { isReference } from '../store/expectation-store.js';
import { HandlerCatalogCache } from '../store/handler-catalog-cache.js';
import type {
  ClaimedDelivery,
  IncomingEvent,
  InboxStore,
  StoredSummary,
  StoreReceipt,
} from '../store/inbox-store.js';
import { INBOX_STORE } from '../store/inbox-store.js';
import { InboxWorker } from '../work/inbox-worker.js';
import { tracedEvent } from '../work/observe-attempt.js';
import { AwaitedHandlers } from './awaited-handlers.js';
import type { ReceiveDeadline } from './awaited-handlers.js';
import { EventSummaries } from './event-summaries.js';
import { observeReceipt } from './observe-receipt.js';
import { ReceiptLog } from './receipt-log.js';
import type { ReceivedEvent } from './receipt-log.js';
import type { VerifiedEvent } from './verified-event.js';

/** How many times an event is received again at most, because the handler catalog changed meanwhile. */
const MAX_CATALOG_CHANGES = 10;

/** Stores an event; resolves with `null` if the event is not to be stored. */
export type StoreEvent = (event: IncomingEvent) => Promise<StoreReceipt | null>;

/** The result of `PaymentInbox.receive()`. */
export interface InboxReceipt {
  /**
   * - `stored`: new, and stored durably; its handlers run in the background.
   * - `handled`: new, and its handlers have succeeded (an inbox that is not durable).
   * - `duplicate`: a copy of an event that was stored or handled, or a second event of a transaction (see
   *   `oncePerTransaction`); nothing runs.
   * - `unhandled`: new and stored; no handler takes its type.
   * - `stale`: new and stored, but older than `webhook.maxAgeMs`; its handlers run only after a redrive.
   */
  readonly status: 'stored' | 'handled' | 'duplicate' | 'unhandled' | 'stale';
  /** Id of the event that is stored: of the first, for a duplicate. */
  readonly id: string;
}

/**
 * The event is not safe yet: `PaymentInbox.receive()` throws only this error. `code` is `inbox_unavailable`,
 * `inbox_full`, `handlers_failed` or `deadline_passed`.
 *
 * If a controller throws it, the response is 503, so that the sender sends the event again: Nest's own exception
 * filter, Express and Fastify read these getters, as they do with errors of `http-errors`.
 */
export class PaymentInboxError extends PaymentsError {
  override readonly name = 'PaymentInboxError';

  get statusCode(): number {
    return 503;
  }

  get status(): number {
    return 503;
  }

  /** Whether the message may be sent to the client. It contains nothing of payload or handlers. */
  get expose(): boolean {
    return true;
  }
}

/**
 * Receives verified events and makes them safe: stores each event with a delivery to each handler that the store knows,
 * and runs deliveries at once if their handlers have free slots in this process.
 */
@Injectable()
export class EventReceiver {
  readonly #awaited: AwaitedHandlers;
  readonly #log: ReceiptLog;
  readonly #failures: ThrottledLog;
  readonly #summaries: EventSummaries;

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
    this.#awaited = new AwaitedHandlers(store, worker);
    this.#log = new ReceiptLog(runtime, catalog, maxAgeMs);
    this.#failures = new ThrottledLog(new ModuleLogger('PaymentInbox'), runtime);
    this.#summaries = new EventSummaries(options.summary, runtime);
  }

  /**
   * See `PaymentInbox.receive()`. An event whose deadline has passed is still stored.
   *
   * @param unshared whether the application has no access to the parsed event, so that the first handler can get it
   *   and need not parse the body again
   */
  async receive(verified: VerifiedEvent, unshared = false): Promise<InboxReceipt> {
    const { deadlineMs } = this.options;
    const leftMs = verified.arrivedAt + deadlineMs - this.runtime.monotonic();
    const deadline: ReceiveDeadline = { passed: false, onPassed: () => {} };
    const { durable } = this.store.capabilities;
    const parsed = unshared ? verified.event : null;
    // #receive() stores each event.
    const store = async () => (await this.#store(verified, (one) => this.#receive(one, parsed)))!;
    try {
      const received = durable ? store() : this.#awaited.receive(verified, deadline, store);
      const inTime = await withTimeLimit(received, leftMs, this.runtime, () => {
        deadline.passed = true;
        deadline.onPassed();
        return new PaymentsError(
          'deadline_passed',
          `The event was not safe ${deadlineMs} ms after it arrived. It is still being stored or handled; a copy of ` +
            'it waits for that.',
        );
      });
      return receiptOf(inTime, durable ? 'stored' : 'handled');
    } catch (error) {
      const rejection = this.#toInboxError(error, verified);
      if (this.observers.active) {
        const { company, event } = verified;
        const info = { code: rejection.code, company, eventId: event.id };
        this.observers.notify('requestRejected', info);
      }
      throw rejection;
    }
  }

  #toInboxError(error: unknown, { event, company }: VerifiedEvent): PaymentInboxError {
    if (error instanceof PaymentsError) return new PaymentInboxError(error.code, error.message);
    this.#failures.error(
      'store',
      () =>
        new LogLine(
          `Event ${event.id} (company ${company}) could not be stored: ${describeError(error)}. The response is 503, ` +
            'so that the sender sends the event again.',
          { company, id: event.id },
        ),
    );
    return new PaymentInboxError(
      'inbox_unavailable',
      'The payment inbox could not store the event; the log says why.',
    );
  }

  /**
   * Receives an event of the module itself, such as an event that a poll found. `store` stores the event, or
   * returns `null` if the event is not to be stored. Does not wait for the handlers in any store: the worker retries them.
   *
   * @throws what `store` throws: the event may not be stored.
   */
  async receiveOwn(verified: VerifiedEvent, store: StoreEvent): Promise<void> {
    await this.#store(verified, store);
  }

  /** Resolves once the event is as durable as the store makes it; with `null` if `receive` did not store it. */
  #store(verified: VerifiedEvent, receive: StoreEvent): Promise<ReceivedEvent | null> {
    const { observers } = this;
    const store = (event: VerifiedEvent) => this.#storeEvent(event, receive);
    if (!observers.active) return store(verified);
    return observeReceipt(verified, observers, store);
  }

  async #storeEvent(verified: VerifiedEvent, receive: StoreEvent): Promise<ReceivedEvent | null> {
    const { company, event, storedId, raw } = verified;
    const summary = this.#summaries.of(event);
    const stored = await this.bodies.encode(raw, { company, id: storedId });
    for (let tries = 0; tries <= MAX_CATALOG_CHANGES; tries += 1) {
      const incoming = this.#incoming(verified, stored, summary);
      const receipt = await receive(incoming);
      if (receipt === null) return null;
      if (receipt.outcome !== 'outdated') {
        const received = await this.#compared({ event: incoming, receipt }, raw);
        this.#log.received(received);
        if (receipt.pending) this.worker.wake(incoming.handlers);
        return received;
      }
      await this.catalog.refresh();
    }
    throw new PaymentsError(
      'inbox_unavailable',
      `The handler catalog changed ${MAX_CATALOG_CHANGES} times while the event was stored.`,
    );
  }

  /** The event as the store receives it. No delivery is assigned to a worker yet. */
  #incoming(verified: VerifiedEvent, raw: Buffer, summary: StoredSummary | null): IncomingEvent {
    const { company, event, storedId, headers, source } = verified;
    const { eventType, timestamp } = event;
    const { transactionId, externalReference } = event.data;
    const { catalog, options } = this;
    const stale = isStale(event, this.runtime.now(), this.maxAgeMs);
    const polled = options.polled.has(eventType) || catalog.polledTypes.includes(eventType);
    const hasTransaction = typeof transactionId === 'string' && transactionId !== '';
    return {
      company,
      id: storedId,
      eventType,
      occurredAt: new Date(timestamp),
      orderingKey: hasTransaction ? transactionId : null,
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
      // No handler runs for a stale event, so the payment still needs an event.
      fulfils: polled && !stale,
    };
  }

  /** Stores the event. Deliveries to handlers of this process that have a free slot run at once. */
  async #receive(unassigned: IncomingEvent, parsed: PaymentEvent | null): Promise<StoreReceipt> {
    const reservation = this.worker.reserve(unassigned.handlers);
    const assign = reservation && {
      workerId: reservation.workerId,
      handlers: reservation.handlers,
    };
    const event = assign ? { ...unassigned, assign } : unassigned;
    // `null`: it is unknown whether deliveries were assigned.
    let assigned: readonly ClaimedDelivery[] | null = null;
    try {
      const [receipt] = (await this.store.receive([event])) as [StoreReceipt];
      assigned = receipt.claimed;
      if (this.observers.tracing) {
        const traced = tracedEvent(event);
        assigned = assigned.map((delivery) => ({ ...delivery, traced }));
      }
      return receipt;
    } catch (error) {
      if (error instanceof PaymentsError && error.code === 'inbox_full') assigned = [];
      throw error;
    } finally {
      reservation?.start(assigned, parsed);
    }
  }

  /** Replaces the outcome `conflict` by `duplicate`, unless the event came by webhook and its decoded body differs from the stored one. */
  async #compared(received: ReceivedEvent, body: Buffer): Promise<ReceivedEvent> {
    const { event, receipt } = received;
    if (receipt.outcome !== 'conflict') return received;
    // Each poll creates a new body for the same event, so only the body of a webhook request can conflict.
    const find = () => this.store.find(event.company, event.id);
    const isConflict = event.source === 'webhook' && (await this.bodies.conflicts(body, find));
    return isConflict ? received : { event, receipt: { ...receipt, outcome: 'duplicate' } };
  }
}

function receiptOf({ receipt, event }: ReceivedEvent, safe: 'stored' | 'handled'): InboxReceipt {
  const { id, outcome } = receipt;
  if (outcome !== 'stored') return { id, status: 'duplicate' };
  if (event.stale) return { id, status: 'stale' };
  return { id, status: event.handlers.length === 0 ? 'unhandled' : safe };
}

/**
 * Whether an event is older than `webhook.maxAgeMs`, so that the inbox may have deleted its id. Events of the type
 * `webhook.test` are never stale: a replay of one changes no payment.
 */
export function isStale(
  { eventType, timestamp }: Pick<PaymentEvent, 'eventType' | 'timestamp'>,
  nowMs: number,
  maxAgeMs: number,
): boolean {
  return nowMs - Date.parse(timestamp) > maxAgeMs && eventType !== TEST_EVENT_TYPE;
}
