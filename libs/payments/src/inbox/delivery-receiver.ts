import { Inject, Injectable, Logger } from '@nestjs/common';
import { ThrottledLog } from '../errors/throttled-log.js';
import type { PaymentEvent } from '../events/payment-event.js';
import { describeThrown } from '../events/thrown.js';
import { PaymentsError } from '../payments.errors.js';
import { PAYMENTS_RUNTIME } from '../payments.runtime.js';
import type { PaymentsRuntime } from '../payments.runtime.js';
import { withTimeLimit } from '../runtime/time-limit.js';
import { EventStorage } from './event-storage.js';
import type { EventFacts, ReceivedEvent } from './event-storage.js';
import { isStale } from './freshness.js';
import { HandlerCatalogCache } from './handler-catalog-cache.js';
import type { IncomingEvent, InboxStore, StoreReceipt } from './inbox-store.js';
import { INBOX_STORE, MAX_AGE_MS, RECEIVE_OPTIONS } from './inbox-tokens.js';
import { InboxWorker } from './inbox-worker.js';
import { deadlinePassed, handlersFailed, PaymentInboxError } from './payment-inbox-error.js';
import { ReceiptLog } from './receipt-log.js';
import type { ResolvedReceiveOptions } from './receive-options.js';
import { Settlements } from './settlements.js';
import type { SettlementWatch } from './settlements.js';
import { StoredBodies } from './stored-bodies.js';
import type { VerifiedDelivery } from './verified-delivery.js';

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

/** Receives verified deliveries and makes them safe. */
@Injectable()
export class DeliveryReceiver {
  readonly #log: ReceiptLog;
  readonly #failed: ThrottledLog;

  constructor(
    @Inject(INBOX_STORE) private readonly store: InboxStore,
    @Inject(RECEIVE_OPTIONS) private readonly options: ResolvedReceiveOptions,
    @Inject(MAX_AGE_MS) private readonly maxAgeMs: number,
    @Inject(PAYMENTS_RUNTIME) private readonly runtime: PaymentsRuntime,
    @Inject(HandlerCatalogCache) catalog: HandlerCatalogCache,
    @Inject(EventStorage) private readonly events: EventStorage,
    @Inject(InboxWorker) private readonly worker: InboxWorker,
    @Inject(Settlements) private readonly settlements: Settlements,
    @Inject(StoredBodies) private readonly bodies: StoredBodies,
  ) {
    this.#log = new ReceiptLog(runtime, catalog, maxAgeMs);
    this.#failed = new ThrottledLog(new Logger('PaymentInbox'), runtime);
  }

  /**
   * Resolves once the delivery is safe: stored durably or, in an inbox that is not durable, handled. Only
   * then may the sender be answered 2xx.
   *
   * @throws PaymentInboxError, to be answered 503 so that the sender tries again: `inbox_unavailable` if the store is
   *   down or the application closes, `inbox_full`, `handlers_failed` and `deadline_passed`.
   */
  async receive(delivery: VerifiedDelivery): Promise<InboxReceipt> {
    const { deadlineMs } = this.options;
    const leftMs = delivery.arrivedAt + deadlineMs - this.runtime.monotonic();
    const deadline = new AbortController();
    try {
      const work = this.#makeSafe(delivery, deadline.signal);
      return await withTimeLimit(work, leftMs, this.runtime, () => {
        deadline.abort();
        return deadlinePassed(deadlineMs);
      });
    } catch (error) {
      throw this.#refusal(error, delivery);
    }
  }

  #refusal(error: unknown, { event, company }: VerifiedDelivery): PaymentInboxError {
    if (error instanceof PaymentsError) return new PaymentInboxError(error.code, error.message);
    this.#failed.error(
      'store',
      () =>
        `Event ${event.id} (company ${company}) could not be stored: ${describeThrown(error)}. The sender is ` +
        'answered 503, so that it sends the event again.',
    );
    return new PaymentInboxError(
      'inbox_unavailable',
      'The payment inbox could not store the delivery; the log says why.',
    );
  }

  /** Makes the delivery safe, however long that takes; after the deadline, nobody waits for its handlers. */
  async #makeSafe(delivery: VerifiedDelivery, deadline: AbortSignal): Promise<InboxReceipt> {
    const { company, raw } = delivery;
    const stored = await this.bodies.encode(raw, { company, id: delivery.event.id });
    const facts = this.#factsOf(delivery, stored);
    if (!this.store.capabilities.durable) return this.#handle(facts, raw, deadline);
    const { receipt, event } = await this.#store(facts, raw);
    return { id: receipt.id, status: statusOf(receipt, event, 'stored') };
  }

  async #handle(facts: EventFacts, body: Buffer, deadline: AbortSignal): Promise<InboxReceipt> {
    if (!this.worker.working) {
      throw new PaymentsError(
        'inbox_unavailable',
        'The application is closing or has not started, and its inbox is in memory: send the delivery again.',
      );
    }
    const { company } = facts;
    // From before the event is stored, so that no attempt ends unseen.
    let watch = this.settlements.watch(company, facts.id);
    try {
      const { receipt, event } = await this.#store(facts, body);
      const { outcome, id } = receipt;
      if (id !== facts.id) {
        watch.end();
        watch = this.settlements.watch(company, id);
      }
      deadline.addEventListener('abort', () => watch.abandon());
      if (deadline.aborted) watch.abandon();
      // The worker runs a new event; of a copy it is not known what is to be done.
      const handlers =
        outcome === 'stored' ? event.handlers : await this.#runAgain(company, id, watch);
      const failed = await watch.failures(handlers);
      if (failed.length > 0) throw handlersFailed(failed.length, handlers.length);
      return { id, status: statusOf(receipt, event, 'handled') };
    } finally {
      watch.end();
    }
  }

  async #store(facts: EventFacts, body: Buffer): Promise<ReceivedEvent> {
    const received = await this.events.add(facts, body);
    this.#log.received(received.receipt, received.event);
    return received;
  }

  #factsOf({ company, event, headers }: VerifiedDelivery, raw: Buffer): EventFacts {
    const transactionId = transactionIdOf(event);
    const { eventType } = event;
    const occurredAt = new Date(event.timestamp);
    const stale = isStale({ eventType, occurredAt }, this.runtime.now(), this.maxAgeMs);
    // A stale event is known by its own id only, or a fresh event of the same transaction would be its duplicate.
    const once = this.options.oncePerTransaction.has(eventType) && !stale;
    return {
      company,
      id: event.id,
      eventType,
      occurredAt,
      orderingKey: transactionId,
      onceKey: once ? transactionId : null,
      raw,
      headers,
      stale,
    };
  }

  /** Makes every handler run that has not succeeded and does not run; resolves with those to wait for. */
  async #runAgain(company: string, id: string, watch: SettlementWatch): Promise<readonly string[]> {
    const stored = await this.store.find(company, id);
    const handlers = (stored?.deliveries ?? [])
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
}

function statusOf(
  { outcome }: StoreReceipt,
  { handlers, stale }: IncomingEvent,
  safe: 'stored' | 'handled',
): InboxReceipt['status'] {
  if (outcome !== 'stored') return 'duplicate';
  if (stale) return 'stale';
  return handlers.length === 0 ? 'unhandled' : safe;
}

function transactionIdOf({ data }: PaymentEvent): string | null {
  const { transactionId } = data;
  return typeof transactionId === 'string' && transactionId !== '' ? transactionId : null;
}
