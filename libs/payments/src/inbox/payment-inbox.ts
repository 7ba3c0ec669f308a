import { Inject, Injectable } from '@nestjs/common';
import { DEFAULT_COMPANY } from '../companies/company.js';
import { HandlerRegistry } from '../events/handler.registry.js';
import { KEPT_MINUTES } from './activity.minutes.js';
import type { ActivityMinute } from './activity.minutes.js';
import { DeliveryReceiver } from './delivery-receiver.js';
import type { InboxReceipt } from './delivery-receiver.js';
import type { DueRun } from './due-runs.js';
import { InboxPruner } from './inbox.pruner.js';
import { InboxRedrive } from './inbox-redrive.js';
import type { DeliveryQuery, RedriveQuery, SelectionResult } from './inbox-redrive.js';
import { INBOX_STORE } from './inbox-tokens.js';
import { InboxWorker } from './inbox.worker.js';
import type {
  EventFilter,
  EventPage,
  InboxCapabilities,
  InboxStats,
  InboxStore,
  StoredEvent,
} from './inbox-store.js';
import { StoredBodies } from './stored-bodies.js';
import type { VerifiedDelivery } from './verified-delivery.js';

/** Which page of the inbox's events `PaymentInbox.list()` shows. */
export interface ListQuery extends EventFilter {
  /** By receipt. Default `newest` first. */
  readonly order?: 'newest' | 'oldest';
  /** Events on a page, 1 to 1,000. Default 50. */
  readonly limit?: number;
  /** `next` of the page before. */
  readonly after?: string | null;
}

/**
 * The inbox, for the application: it takes verified deliveries in, shows what became of them, and lets an
 * operator run them again.
 *
 * @example
 * ```ts
 * // What failed last night runs again, ten events a second.
 * await inbox.redrive({
 *   from: new Date('2026-11-19T20:00Z'),
 *   handler: 'transaction.completed#markPaid',
 *   ratePerSecond: 10,
 * });
 * ```
 */
@Injectable()
export class PaymentInbox {
  readonly #redrive: InboxRedrive;

  constructor(
    @Inject(INBOX_STORE) private readonly store: InboxStore,
    @Inject(DeliveryReceiver) private readonly receiver: DeliveryReceiver,
    @Inject(InboxWorker) private readonly worker: InboxWorker,
    @Inject(InboxPruner) private readonly pruner: InboxPruner,
    @Inject(HandlerRegistry) private readonly registry: HandlerRegistry,
    @Inject(StoredBodies) private readonly bodies: StoredBodies,
  ) {
    this.#redrive = new InboxRedrive(store, registry);
  }

  /**
   * Resolves once the delivery is safe: stored durably or, in an inbox that is not durable, handled. Only
   * then may the sender be answered 2xx.
   *
   * @throws PaymentInboxError, to be answered 503 so that the sender tries again: `inbox_unavailable` where
   *   the store is down or the application closes, `inbox_full`, `handlers_failed` and `deadline_passed`.
   */
  receive(delivery: VerifiedDelivery): Promise<InboxReceipt> {
    return this.receiver.receive(delivery);
  }

  /** What the inbox in use can and cannot promise. */
  get capabilities(): InboxCapabilities {
    return this.store.capabilities;
  }

  /** Names of the handlers in this process, in alphabetical order: each has deliveries of its own. */
  handlers(): string[] {
    return this.registry.names().toSorted();
  }

  /**
   * The event of that id, with its body, its headers and the state and history of each delivery; `undefined`
   * where none is known. If `bodyCodec` cannot decode the body, `raw` is `null` and `bodyError` says why.
   */
  async get(id: string, company: string = DEFAULT_COMPANY): Promise<StoredEvent | undefined> {
    return this.bodies.show(await this.store.find(company, id));
  }

  /** A page of events, without their bodies, headers and histories. */
  async list(query: ListQuery = {}): Promise<EventPage> {
    const { order = 'newest', limit = 50, after = null, ...filter } = query;
    if (!Number.isInteger(limit) || limit < 1 || limit > 1000) {
      throw new TypeError('"limit" must be a whole number of events from 1 to 1,000.');
    }
    return this.store.list({ filter, order, limit, after });
  }

  /** Counts by state and handler, and the age of the oldest that waits. Cheap enough for a scraper. */
  async stats(): Promise<InboxStats> {
    return this.store.stats();
  }

  /**
   * What the inbox did in each of the last `minutes` (1 to 1,440, default 60), all processes together: the oldest
   * first, the current minute last, zeros where nothing happened. For plots. Each process adds its counts every
   * few seconds, so that another's last seconds may be missing here, and those of one that crashed are lost.
   *
   * @throws TypeError for a number of minutes that is none.
   */
  async activity(minutes = 60): Promise<ActivityMinute[]> {
    if (!Number.isInteger(minutes) || minutes < 1 || minutes > KEPT_MINUTES) {
      throw new TypeError('"minutes" must be a whole number of minutes from 1 to 1,440.');
    }
    return this.store.activity(minutes);
  }

  /**
   * Runs deliveries again: by default the dead ones that match, from their first attempt. Asking twice is asking
   * once. A delivery that runs is left alone.
   *
   * @throws TypeError for a handler that does not exist, or a rate that is none.
   */
  async redrive(query: RedriveQuery): Promise<SelectionResult> {
    const result = await this.#redrive.redrive(query);
    this.worker.wake();
    return result;
  }

  /**
   * Runs the deliveries that are due, those that become due meanwhile included, and resolves once none is due or running,
   * or after `forMs` milliseconds (1 to 900,000, default 10,000). For platforms that freeze a process between requests,
   * with `worker.background: false`: call it before you return the answer to a delivery, and on a schedule, for retries.
   * `worker.concurrency` and paused handlers are respected. After `forMs` nothing new starts; a handler that still runs
   * goes on, and if the process is frozen for longer than its lease, another process runs the delivery again.
   *
   * @throws TypeError for a time out of bounds.
   * @throws PaymentsError `inbox_unavailable` if the application is not initialised, or is closing.
   * @example
   * ```ts
   * const { done, failed, more } = await inbox.runDue({ forMs: 5000 });
   * ```
   */
  async runDue({ forMs = 10_000 }: { readonly forMs?: number } = {}): Promise<DueRun> {
    if (!Number.isInteger(forMs) || forMs < 1 || forMs > 900_000) {
      throw new TypeError('"forMs" must be a whole number of milliseconds from 1 to 900,000.');
    }
    return this.worker.runDue(forMs);
  }

  /** Takes deliveries out: by default the dead ones that match. They stay in the inbox as `skipped`. */
  async skip(query: DeliveryQuery): Promise<SelectionResult> {
    return this.#redrive.skip(query);
  }

  /**
   * Stops a handler's deliveries, or all, in every process. What runs ends; receiving goes on.
   *
   * @throws TypeError where no handler has the name, here or in what is stored.
   */
  async pause(handler = '*'): Promise<void> {
    if (handler !== '*' && this.registry.get(handler) === undefined) {
      const { deliveries } = await this.store.stats();
      if (!deliveries.some((stored) => stored.handler === handler)) throw this.#unknown(handler);
    }
    await this.store.pause(handler, true);
  }

  /** Undoes {@link pause}: of a handler, or of all. */
  async resume(handler = '*'): Promise<void> {
    await this.store.pause(handler, false);
    this.worker.wake();
  }

  /**
   * Forgets one batch of old events now, as `worker.keepMs` and `worker.knowMs` say; it also happens by itself,
   * every minute. Returns how many events it touched: as many as `limit` (1 to 10,000, default 500), and there
   * may be more.
   *
   * @throws TypeError for a limit that is none.
   */
  async prune(limit = 500): Promise<number> {
    if (!Number.isInteger(limit) || limit < 1 || limit > 10_000) {
      throw new TypeError('"limit" must be a whole number of events from 1 to 10,000.');
    }
    return this.pruner.prune(limit);
  }

  #unknown(handler: string): TypeError {
    const known = this.registry.names().join(', ') || 'none';
    return new TypeError(`No handler is named "${handler}". There are: ${known}.`);
  }
}
