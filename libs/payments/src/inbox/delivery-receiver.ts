import { Inject, Injectable, Logger } from '@nestjs/common';
import { ThrottledLog } from '../errors/throttled-log.js';
import { HandlerRegistry } from '../events/handler.registry.js';
import { TEST_EVENT_TYPE } from '../events/payment-event.js';
import type { PaymentEvent } from '../events/payment-event.js';
import { describeThrown } from '../events/thrown.js';
import { PaymentsError } from '../payments.errors.js';
import { PAYMENTS_RUNTIME } from '../payments.runtime.js';
import type { PaymentsRuntime } from '../payments.runtime.js';
import { isStale, staleWarning } from './freshness.js';
import type { IncomingEvent, InboxStore, StoreReceipt } from './inbox-store.js';
import { INBOX_STORE, MAX_AGE_MS, RECEIVE_OPTIONS } from './inbox-tokens.js';
import { InboxWorker } from './inbox.worker.js';
import { deadlinePassed, handlersFailed, PaymentInboxError } from './payment-inbox.error.js';
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
   * - `duplicate`: a copy of an event that is safe already; nothing runs for it.
   * - `unhandled`: new and kept; no handler takes its type.
   * - `stale`: new and kept, but older than `webhook.maxAgeMs`; its handlers run only after a redrive.
   */
  readonly status: 'stored' | 'handled' | 'duplicate' | 'unhandled' | 'stale';
  /** Id of the event. */
  readonly id: string;
}

/** Until when a delivery is to be safe. */
interface Deadline {
  passed: boolean;
  /** Called when it passes. */
  onPass: () => void;
}

/** Takes verified deliveries in and makes them safe. */
@Injectable()
export class DeliveryReceiver {
  readonly #logger = new Logger('PaymentInbox');
  readonly #unhandled: ThrottledLog;
  readonly #stale: ThrottledLog;
  readonly #failed: ThrottledLog;

  constructor(
    @Inject(INBOX_STORE) private readonly store: InboxStore,
    @Inject(RECEIVE_OPTIONS) private readonly options: ResolvedReceiveOptions,
    @Inject(MAX_AGE_MS) private readonly maxAgeMs: number,
    @Inject(PAYMENTS_RUNTIME) private readonly runtime: PaymentsRuntime,
    @Inject(HandlerRegistry) private readonly registry: HandlerRegistry,
    @Inject(InboxWorker) private readonly worker: InboxWorker,
    @Inject(Settlements) private readonly settlements: Settlements,
    @Inject(StoredBodies) private readonly bodies: StoredBodies,
  ) {
    this.#unhandled = new ThrottledLog(this.#logger, runtime);
    this.#stale = new ThrottledLog(this.#logger, runtime);
    this.#failed = new ThrottledLog(this.#logger, runtime);
  }

  /**
   * Resolves once the delivery is safe: stored durably or, in an inbox that is not durable, handled. Only
   * then may the sender be answered 2xx.
   *
   * @throws PaymentInboxError, to be answered 503 so that the sender tries again: `inbox_unavailable` where
   *   the store is down or the application closes, `inbox_full`, `handlers_failed` and `deadline_passed`.
   */
  receive(delivery: VerifiedDelivery): Promise<InboxReceipt> {
    const { deadlineMs } = this.options;
    return new Promise((resolve, reject) => {
      const leftMs = Math.max(0, delivery.arrivedAt + deadlineMs - this.runtime.monotonic());
      const deadline: Deadline = { passed: false, onPass: () => {} };
      const cancel = this.runtime.schedule(leftMs, () => {
        deadline.passed = true;
        deadline.onPass();
        reject(this.#refusal(deadlinePassed(deadlineMs), delivery));
      });
      this.#takeIn(delivery, deadline).then(
        (receipt) => {
          cancel();
          resolve(receipt);
        },
        (error: unknown) => {
          cancel();
          if (!deadline.passed) reject(this.#refusal(error, delivery));
        },
      );
    });
  }

  #refusal(error: unknown, { event, company }: VerifiedDelivery): PaymentInboxError {
    if (error instanceof PaymentsError) return new PaymentInboxError(error.code, error.message);
    this.#failed.error(
      'store',
      () =>
        `Event ${event.id} (company ${company}) could not be taken in: ${describeThrown(error)}`,
    );
    return new PaymentInboxError(
      'inbox_unavailable',
      'The payment inbox could not take the delivery in; the log says why.',
    );
  }

  /** Makes the delivery safe, however long that takes; after the deadline, nobody waits for its handlers. */
  async #takeIn(delivery: VerifiedDelivery, deadline: Deadline): Promise<InboxReceipt> {
    const { company, raw } = delivery;
    const stored = await this.bodies.encode(raw, { company, id: delivery.event.id });
    const event = this.#toIncoming(delivery, stored);
    if (!this.store.capabilities.durable) return this.#handle(event, raw, deadline);
    const { outcome, id } = await this.#store(event, raw);
    this.worker.wake();
    return { id, status: statusOf(outcome, event, 'stored') };
  }

  async #handle(event: IncomingEvent, body: Buffer, deadline: Deadline): Promise<InboxReceipt> {
    if (!this.worker.working) {
      throw new PaymentsError(
        'inbox_unavailable',
        'The application is closing, or not up yet, and its inbox is in memory: the delivery is refused, to be sent again.',
      );
    }
    const { company } = event;
    // From before the event is stored, so that no attempt ends unseen.
    let watch = this.settlements.watch(company, event.id);
    try {
      const { outcome, id } = await this.#store(event, body);
      if (id !== event.id) {
        watch.end();
        watch = this.settlements.watch(company, id);
      }
      deadline.onPass = () => watch.abandon();
      if (deadline.passed) watch.abandon();
      // Whoever stored a new event has the worker run it; only of a copy it is not known what is to be done.
      const handlers =
        outcome === 'stored' ? event.handlers : await this.#runAgain(company, id, watch);
      const failed = await watch.failures(handlers);
      if (failed.length > 0) throw handlersFailed(failed.length, handlers.length);
      return { id, status: statusOf(outcome, event, 'handled') };
    } finally {
      watch.end();
    }
  }

  async #store(event: IncomingEvent, body: Buffer): Promise<StoreReceipt> {
    const [receipt] = (await this.store.receive([event])) as [StoreReceipt];
    const find = () => this.store.find(event.company, event.id);
    const copy = receipt.outcome === 'conflict' && !(await this.bodies.conflicts(body, find));
    const known: StoreReceipt = copy ? { ...receipt, outcome: 'duplicate' } : receipt;
    this.#log(known, event);
    return known;
  }

  #toIncoming({ company, event, headers }: VerifiedDelivery, raw: Buffer): IncomingEvent {
    const transactionId = transactionIdOf(event);
    const { eventType } = event;
    const occurredAt = new Date(event.timestamp);
    const stale = isStale({ eventType, occurredAt }, this.runtime.now(), this.maxAgeMs);
    // A stale event is known by its own id only, or a fresh event of the same transaction would be its duplicate.
    const byTransaction =
      this.options.dedupeBy === 'transaction' && transactionId !== null && !stale;
    return {
      company,
      id: event.id,
      dedupeKey: byTransaction ? `${eventType}\n${transactionId}` : event.id,
      eventType,
      occurredAt,
      orderingKey: transactionId,
      raw,
      headers,
      handlers: stale ? [] : this.registry.matching(eventType),
      stale,
    };
  }

  /** Has every handler run that has not succeeded and is not under way; resolves with those to wait for. */
  async #runAgain(company: string, id: string, watch: SettlementWatch): Promise<readonly string[]> {
    const stored = await this.store.find(company, id);
    const handlers = (stored?.deliveries ?? [])
      .filter(({ state }) => state !== 'done' && state !== 'skipped')
      .map(({ handler }) => handler);
    // What has failed meanwhile is not begun again for this delivery.
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

  #log({ outcome, id }: StoreReceipt, event: IncomingEvent): void {
    const { company, eventType, handlers, stale } = event;
    if (outcome === 'conflict') {
      this.#logger.error(
        `Event ${id} (company ${company}) came again with another body. The first is kept and the second is not ` +
          'handled: ask the service which is right.',
      );
    } else if (outcome === 'stored' && eventType === TEST_EVENT_TYPE) {
      this.#logger.log(
        `Test delivery ${id} of company ${company} arrived and its signature is good.`,
      );
    } else if (outcome === 'stored' && stale) {
      this.#stale.warn(eventType, () => staleWarning(event, this.runtime.now(), this.maxAgeMs));
    } else if (outcome === 'stored' && handlers.length === 0) {
      this.#unhandled.warn(eventType, () => this.#nobodyTakes(eventType, id, company));
    }
  }

  #nobodyTakes(eventType: string, id: string, company: string): string {
    const similar = this.registry.similar(eventType);
    const hint = similar === undefined ? '' : ` Did you mean "${similar}", which a handler takes?`;
    return (
      `No handler takes the event type "${eventType}", so event ${id} (company ${company}) is stored as ` +
      `unhandled.${hint} Once a handler takes the type, redrive it.`
    );
  }
}

function statusOf(
  outcome: StoreReceipt['outcome'],
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
