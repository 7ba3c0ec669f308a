import { Inject, Injectable, Logger } from '@nestjs/common';
import { ThrottledLog } from '../../errors/throttled-log.js';
import { describeError, PaymentsError } from '../../errors/payments-error.js';
import { PAYMENTS_RUNTIME } from '../../runtime/payments-runtime.js';
import type { PaymentsRuntime } from '../../runtime/payments-runtime.js';
import { withTimeLimit } from '../../runtime/deadline.js';
import { StoredBodies } from '../store/body-codec.js';
import { HandlerCatalogCache } from '../store/handler-catalog-cache.js';
import type {
  ClaimedDelivery,
  IncomingEvent,
  InboxStore,
  StoreReceipt,
} from '../store/inbox-store.js';
import { INBOX_STORE } from '../store/inbox-store.js';
import { InboxWorker } from '../work/inbox-worker.js';
import {
  deadlinePassed,
  deletedMeanwhile,
  handlersFailed,
  PaymentInboxError,
} from './payment-inbox-error.js';
import { ReceiptLog } from './receipt-log.js';
import { isStale, MAX_AGE_MS, RECEIVE_OPTIONS } from '../inbox-options.js';
import type { ResolvedReceiveOptions } from '../inbox-options.js';
import { OutcomeWatches } from './awaited-handlers.js';
import type { OutcomeWatch } from './awaited-handlers.js';
import type { VerifiedEvent } from './verified-event.js';

/** How often an event is received again because the handler catalog has changed meanwhile. */
const MAX_CATALOG_CHANGES = 10;

/** What became of a delivery that was acknowledged. */
export interface InboxReceipt {
  /**
   * - `stored`: new and safe; its handlers run in the background.
   * - `handled`: new, and its handlers have succeeded (an inbox that is not durable).
   * - `duplicate`: a copy of an event that is safe already, or another event of a transaction whose type is in
   *   `oncePerTransaction`; nothing runs for it.
   * - `unhandled`: new and kept; no handler takes its type.
   * - `stale`: new and kept, but older than `webhook.maxAgeMs`; its handlers run only after a redrive.
   */
  readonly status: 'stored' | 'handled' | 'duplicate' | 'unhandled' | 'stale';
  /** Id of the event that is stored: of the first, for a duplicate. */
  readonly id: string;
}

/** The event as it was given to the store, and what became of it. */
interface ReceivedEvent {
  readonly event: IncomingEvent;
  readonly receipt: StoreReceipt;
}

/** Whether the sender of a delivery was answered because its deadline passed. */
interface Deadline {
  passed: boolean;
  /** Called when it passes. */
  onPassed: () => void;
}

/**
 * Receives verified deliveries and makes them safe: stores each event with a delivery to each handler that the database
 * knows, and runs the deliveries that handlers of this process have free places for at once.
 */
@Injectable()
export class EventReceiver {
  readonly #log: ReceiptLog;
  readonly #failed: ThrottledLog;

  constructor(
    @Inject(INBOX_STORE) private readonly store: InboxStore,
    @Inject(RECEIVE_OPTIONS) private readonly options: ResolvedReceiveOptions,
    @Inject(MAX_AGE_MS) private readonly maxAgeMs: number,
    @Inject(PAYMENTS_RUNTIME) private readonly runtime: PaymentsRuntime,
    private readonly catalog: HandlerCatalogCache,
    private readonly worker: InboxWorker,
    private readonly settlements: OutcomeWatches,
    private readonly bodies: StoredBodies,
  ) {
    this.#log = new ReceiptLog(runtime, catalog, maxAgeMs);
    this.#failed = new ThrottledLog(new Logger('PaymentInbox'), runtime);
  }

  /**
   * Resolves once the delivery is safe: stored durably or, in an inbox that is not durable, handled. Only
   * then may the sender be answered 2xx. After the deadline, storing goes on.
   *
   * @throws PaymentInboxError, to be answered 503 so that the sender tries again: `inbox_unavailable` if the store is
   *   down or the application closes, `inbox_full`, `handlers_failed` and `deadline_passed`.
   */
  async receive(delivery: VerifiedEvent): Promise<InboxReceipt> {
    const { deadlineMs } = this.options;
    const leftMs = delivery.arrivedAt + deadlineMs - this.runtime.monotonic();
    const deadline: Deadline = { passed: false, onPassed: () => {} };
    try {
      const safe = this.store.capabilities.durable
        ? this.#store(delivery).then((received) => receiptOf(received, 'stored'))
        : this.#handle(delivery, deadline);
      return await withTimeLimit(safe, leftMs, this.runtime, () => {
        deadline.passed = true;
        deadline.onPassed();
        return deadlinePassed(deadlineMs);
      });
    } catch (error) {
      throw this.#refusal(error, delivery);
    }
  }

  #refusal(error: unknown, { event, company }: VerifiedEvent): PaymentInboxError {
    if (error instanceof PaymentsError) return new PaymentInboxError(error.code, error.message);
    this.#failed.error(
      'store',
      () =>
        `Event ${event.id} (company ${company}) could not be stored: ${describeError(error)}. The sender is ` +
        'answered 503, so that it sends the event again.',
    );
    return new PaymentInboxError(
      'inbox_unavailable',
      'The payment inbox could not store the delivery; the log says why.',
    );
  }

  /** For an inbox that is not durable: resolves once the handlers have succeeded. */
  async #handle(delivery: VerifiedEvent, deadline: Deadline): Promise<InboxReceipt> {
    if (!this.worker.working) {
      throw new PaymentsError(
        'inbox_unavailable',
        'The application is closing or has not started, and its inbox is in memory: send the delivery again.',
      );
    }
    const { company, event } = delivery;
    // From before the event is stored, so that no attempt ends unseen.
    let watch = this.settlements.watch(company, event.id);
    try {
      const received = await this.#store(delivery);
      const { id, outcome } = received.receipt;
      if (id !== event.id) {
        watch.end();
        watch = this.settlements.watch(company, id);
      }
      deadline.onPassed = () => watch.abandon();
      if (deadline.passed) watch.abandon();
      // The worker runs a new event; which handlers of a copy still have to run is not known yet.
      const handlers =
        outcome === 'stored' ? received.event.handlers : await this.#runAgain(company, id, watch);
      const failed = await watch.failures(handlers);
      if (failed.length > 0) throw handlersFailed(failed.length, handlers.length);
      return receiptOf(received, 'handled');
    } finally {
      watch.end();
    }
  }

  /** Makes every handler run that has not succeeded and does not run; resolves with those to wait for. */
  async #runAgain(company: string, id: string, watch: OutcomeWatch): Promise<readonly string[]> {
    const stored = await this.store.find(company, id);
    if (stored === undefined) throw deletedMeanwhile(id);
    const handlers = stored.deliveries
      .filter(({ state }) => state !== 'done' && state !== 'skipped')
      .map(({ handler }) => handler);
    // What has failed meanwhile is not started again for this delivery.
    const waiting = handlers.filter((handler) => !watch.has(handler));
    if (waiting.length > 0) {
      await this.store.redrive([{ company, id, handlers: waiting }], {
        force: false,
        dueInMs: [0],
      });
    }
    this.worker.wake();
    return handlers;
  }

  /** Resolves once the event is as durable as the store makes it. */
  async #store(delivery: VerifiedEvent): Promise<ReceivedEvent> {
    const { company, raw } = delivery;
    const stored = await this.bodies.encode(raw, { company, id: delivery.event.id });
    for (let tries = 0; tries <= MAX_CATALOG_CHANGES; tries += 1) {
      const received = await this.#receive(this.#toIncoming(delivery, stored));
      const { outcome } = received.receipt;
      if (outcome !== 'outdated') {
        const compared = outcome === 'conflict' ? await this.#compared(received, raw) : received;
        this.#log.received(compared.receipt, compared.event);
        return compared;
      }
      await this.catalog.refresh();
    }
    throw new PaymentsError(
      'inbox_unavailable',
      `The handler catalog changed ${MAX_CATALOG_CHANGES} times while the delivery was stored.`,
    );
  }

  #toIncoming({ company, event, headers }: VerifiedEvent, raw: Buffer): IncomingEvent {
    const { id, eventType, timestamp, data } = event;
    const occurredAt = new Date(timestamp);
    const { transactionId } = data;
    const orderingKey =
      typeof transactionId === 'string' && transactionId !== '' ? transactionId : null;
    const stale = isStale({ eventType, occurredAt }, this.runtime.now(), this.maxAgeMs);
    // A stale event is known by its own id only, or a fresh event of the same transaction would be its duplicate.
    const once = this.options.oncePerTransaction.has(eventType) && !stale;
    return {
      company,
      id,
      eventType,
      occurredAt,
      orderingKey,
      onceKey: once ? orderingKey : null,
      raw,
      headers,
      stale,
      handlers: stale ? [] : this.catalog.matching(eventType),
      catalogVersion: this.catalog.current.version,
      assign: null,
    };
  }

  /** If handlers of this process have free places, runs the event's deliveries to them at once. */
  async #receive(unassigned: IncomingEvent): Promise<ReceivedEvent> {
    const reservation = this.worker.reserve(unassigned.handlers);
    const assign = reservation && { worker: reservation.worker, handlers: reservation.handlers };
    const event = assign ? { ...unassigned, assign } : unassigned;
    // `null`: it is unknown whether deliveries were assigned.
    let assigned: readonly ClaimedDelivery[] | null = null;
    try {
      const [receipt] = (await this.store.receive([event])) as [StoreReceipt];
      assigned = receipt.claimed;
      if (receipt.pending) this.worker.wake(event.handlers);
      return { event, receipt };
    } catch (error) {
      if (error instanceof PaymentsError && error.code === 'inbox_full') assigned = [];
      throw error;
    } finally {
      reservation?.start(assigned);
    }
  }

  /** A codec that encrypts never returns the same bytes twice, so the store cannot compare the bodies. */
  async #compared(received: ReceivedEvent, body: Buffer): Promise<ReceivedEvent> {
    const { event, receipt } = received;
    const find = () => this.store.find(event.company, event.id);
    if (await this.bodies.conflicts(body, find)) return received;
    return { event, receipt: { ...receipt, outcome: 'duplicate' } };
  }
}

function receiptOf(
  { receipt: { outcome, id }, event: { handlers, stale } }: ReceivedEvent,
  safe: 'stored' | 'handled',
): InboxReceipt {
  if (outcome !== 'stored') return { id, status: 'duplicate' };
  if (stale) return { id, status: 'stale' };
  return { id, status: handlers.length === 0 ? 'unhandled' : safe };
}
