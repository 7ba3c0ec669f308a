import { Inject, Injectable } from '@nestjs/common';
import { DEFAULT_COMPANY } from '../companies/company.js';
import { HandlerRegistry, isReserved } from '../events/handler-registry.js';
import { PAYMENTS_RUNTIME } from '../runtime/payments-runtime.js';
import type { PaymentsRuntime } from '../runtime/payments-runtime.js';
import { EventReceiver } from './receive/event-receiver.js';
import type { InboxReceipt, VerifiedEvent } from './receive/event-receiver.js';
import { InboxWorker } from './work/inbox-worker.js';
import type { RunDueResult } from './work/inbox-worker.js';
import { HandlerCatalogCache } from './store/handler-catalog-cache.js';
import type { InboxHandler } from './store/handler-catalog-cache.js';
import { InboxMaintenance } from './operate/inbox-maintenance.js';
import { AuditTrail } from './operate/audit-trail.js';
import type { AuditEntry, StoredAuditEntry } from './operate/audit-trail.js';
import { FailureGroups } from './operate/failure-groups.js';
import type { Acknowledgement, Failures } from './operate/failure-groups.js';
import { InboxRedrive, matchingHandlers, unknownHandler } from './operate/inbox-redrive.js';
import type { DeliveryQuery, RedriveQuery, SelectionResult } from './operate/inbox-redrive.js';
import { RedriveJobs } from './operate/redrive-jobs.js';
import type { RedriveJob, RedriveJobOptions } from './operate/redrive-jobs.js';
import { ProcessReports } from './operate/process-reports.js';
import type { InboxProcess } from './operate/process-reports.js';
import { WORKER_OPTIONS } from './work/worker-options.js';
import type { ResolvedWorkerOptions } from './work/worker-options.js';
import { POLL_HANDLER } from './store/expectation-store.js';
import type {
  EventFilter,
  EventPage,
  InboxActivity,
  InboxStats,
  PauseFacts,
} from './store/inbox-store.js';
import type { InboxCapabilities, InboxStore, StoredEvent } from './store/inbox-store.js';
import { INBOX_STORE } from './store/inbox-store.js';
import { assertDate, assertText, assertTimes, assertWhole } from './store/stored-event.js';
import { MAX_NOTE, MAX_WHO } from './store/stored-event.js';
import { StoredBodies } from './store/body-codec.js';

/** Selects the page of stored events that `PaymentInbox.list()` returns. */
export interface ListQuery extends EventFilter {
  /**
   * Selects only events with a delivery whose last error is in the same group as this error; see
   * {@link PaymentInbox.failures}. If `handler` or `state` is set, the delivery must match these fields too. The inbox
   * reads a page without this filter, and then removes the events that have no such delivery, so the page may have
   * fewer events than `limit`.
   */
  readonly error?: string;
  /**
   * Whether the list begins with the event that was received last, or with the event that was received first. Default
   * `newest`.
   */
  readonly order?: 'newest' | 'oldest';
  /** Maximum number of events on a page, 1 to 1,000. Default 50. */
  readonly limit?: number;
  /** The value of `next` in the previous page. Default: `null`, for the first page. */
  readonly after?: string | null;
}

/**
 * The API of the inbox, which receives verified events, returns the state of their deliveries, redrives and skips
 * deliveries, and pauses handlers.
 *
 * @example
 * ```ts
 * // Redrives the dead deliveries of events received since yesterday evening, ten events per second.
 * await inbox.startRedrive(
 *   { from: new Date('2026-11-19T20:00Z'), handler: 'transaction.completed#markPaid' },
 *   { ratePerSecond: 10 },
 * );
 * ```
 */
@Injectable()
export class PaymentInbox {
  readonly #failures: FailureGroups;
  readonly #audit: AuditTrail;

  constructor(
    @Inject(INBOX_STORE) private readonly store: InboxStore,
    private readonly receiver: EventReceiver,
    private readonly worker: InboxWorker,
    private readonly maintenance: InboxMaintenance,
    private readonly registry: HandlerRegistry,
    private readonly catalog: HandlerCatalogCache,
    private readonly bodies: StoredBodies,
    @Inject(WORKER_OPTIONS) private readonly options: ResolvedWorkerOptions,
    private readonly reports: ProcessReports,
    private readonly redrives: InboxRedrive,
    private readonly jobs: RedriveJobs,
    @Inject(PAYMENTS_RUNTIME) private readonly runtime: PaymentsRuntime,
  ) {
    this.#failures = new FailureGroups(store, runtime);
    this.#audit = new AuditTrail(store, runtime);
  }

  /**
   * Resolves once the event is safe: it is stored durably or, if the inbox is not durable, its handlers have succeeded.
   * The response to the webhook request may be 2xx only after the event is safe. If the deadline passes before the
   * event is safe, the call rejects, but the inbox continues to store or handle the event.
   *
   * @throws PaymentInboxError with the code `inbox_unavailable` (the store is down, or the application is closing),
   *   `inbox_full`, `handlers_failed` or `deadline_passed`. After such an error, the response must be 503, so that the
   *   sender sends the event again.
   */
  receive(verified: VerifiedEvent): Promise<InboxReceipt> {
    return this.receiver.receive(verified);
  }

  /** The optional guarantees that the inbox of this application gives. */
  get capabilities(): InboxCapabilities {
    return this.store.capabilities;
  }

  /**
   * Returns the handlers of this process and of other processes, sorted by name. The inbox stores a delivery to every
   * handler that takes the type of an event, even if no process registers the handler any more; see
   * {@link forgetHandler}.
   */
  async handlers(): Promise<InboxHandler[]> {
    const { handlers } = await this.catalog.refresh();
    const unseen = this.registry
      .all()
      .map(({ name, patterns }) => ({ name, patterns, firstSeenAt: null, lastSeenAt: null }));
    const known = new Map([...unseen, ...handlers].map((handler) => [handler.name, handler]));
    return [...known.values()]
      .filter(({ name }) => !isReserved(name))
      .map((handler) => ({ ...handler, here: this.registry.get(handler.name) !== undefined }))
      .toSorted((a, b) => (a.name < b.name ? -1 : 1));
  }

  /**
   * Removes a handler from the inbox if no running process has registered it. The handler gets no deliveries of new
   * events, and its pending and dead deliveries are skipped. If a process registers the handler later, the handler is
   * added again and gets the events that are received from that moment on. If a call fails, call the method again to
   * skip the other deliveries.
   *
   * @returns the number of skipped deliveries; `null` if nothing was changed, because a running process has registered
   *   the handler.
   * @throws TypeError if `name` is the name of a handler of the module itself.
   */
  async forgetHandler(name: string): Promise<number | null> {
    if (isReserved(name))
      throw new TypeError(`"${name}" is a handler of the module itself; it cannot be removed.`);
    if (!(await this.store.forgetHandler(name))) return null;
    await this.catalog.refresh();
    return this.redrives.skipRemoved(name);
  }

  /**
   * Returns the event with this id, with its body, its headers, and the state and history of each delivery; `undefined`
   * if the inbox has no event with this id. If `bodyCodec` cannot decode the body, `raw` is `null` and `bodyError`
   * gives the reason.
   */
  async get(id: string, company: string = DEFAULT_COMPANY): Promise<StoredEvent | undefined> {
    return this.bodies.show(await this.store.find(company, id));
  }

  /**
   * Returns the events whose transaction id or reference is exactly `payment`, at most 100, the newest first. Each
   * event contains its headers, its repeats, and the state and history of each delivery, but not its body.
   */
  async eventsOf(payment: string, company: string = DEFAULT_COMPANY): Promise<StoredEvent[]> {
    return this.store.eventsOf(company, payment);
  }

  /**
   * Returns a page of events, without their bodies, headers and histories. One call compares at most 20,000 events with
   * the filter, so a page may have fewer events than `limit`, or none, although more events match. Therefore, read
   * pages until `next` is `null`. The memory inbox has no such limit.
   *
   * @throws TypeError if `limit`, `after`, `from` or `to` is invalid.
   */
  async list(query: ListQuery = {}): Promise<EventPage> {
    const { order = 'newest', limit = 50, after = null, error, ...filter } = query;
    assertWhole('limit', limit, { max: 1000, unit: 'events' });
    assertTimes(query);
    const { events, next } = await this.store.list({ filter, order, limit, after });
    if (error === undefined) return { events, next };
    const matches = (event: StoredEvent) => matchingHandlers(event, query, query.state).length > 0;
    return { events: events.filter(matches), next };
  }

  /**
   * Returns the number of unfinished deliveries by handler and state, and the age of the oldest unfinished delivery.
   * Counts are exact up to 10,000: above that, `count` is 10,000 and `more` is `true`. A call is cheap enough for each
   * scrape of a metrics endpoint.
   */
  async stats(): Promise<InboxStats> {
    return this.store.stats();
  }

  /**
   * Returns the deliveries that are pending, running or dead and have at least one attempt that failed or was lost,
   * grouped by handler, state and error. Errors that differ only in ids and numbers are in one group. However, errors
   * with different numbers from 100 to 599 are in different groups, because such a number may be an HTTP status. Reads
   * at most the 10,000 newest of these deliveries. To change the deliveries of one group, call {@link redrive} or
   * {@link skip} with its `handler` and `error`.
   */
  async failures(): Promise<Failures> {
    return this.#failures.list();
  }

  /**
   * Stores a note on a group of {@link failures}, and replaces an earlier note. Pass the group as the operator saw it.
   * If the group later has more deliveries than `count`, or one of its deliveries fails after `newestAt`,
   * {@link failures} returns the note with `changed: true`. The inbox stores the note for 90 days. If `note` is `null`,
   * this method deletes the stored note of the group.
   *
   * @throws TypeError if `note` or `who` is out of bounds.
   */
  async acknowledge(acknowledgement: Acknowledgement): Promise<void> {
    return this.#failures.acknowledge(acknowledgement);
  }

  /**
   * Returns the activity of the inbox and of each handler in each of the last `minutes` closed minutes (1 to 1,440,
   * default 60), in all processes together. A call reads the events that were received since these minutes began, at
   * least the 10,000 and at most about the 100,000 newest, so do not call this method more often than necessary. The
   * counts are complete from the time `completeFrom` on.
   *
   * @throws TypeError if `minutes` is out of bounds.
   */
  async activity(minutes = 60): Promise<InboxActivity> {
    assertWhole('minutes', minutes, { max: 1440, unit: 'minutes' });
    return this.store.activity(minutes, this.options.retainEventsMs);
  }

  /**
   * Returns the processes that run, and the processes that closed or were lost within the last hour. For each process,
   * returns its handlers, the numbers of webhook requests that it accepted and rejected, when each webhook secret last
   * verified a request, and the results of its calls to the payments service. The process that runs this method is the
   * first.
   */
  async processes(): Promise<InboxProcess[]> {
    return this.reports.list();
  }

  /**
   * Makes matching deliveries due now, with attempts numbered from 1. By default, redrives only dead deliveries.
   * Idempotent. Does not change a running delivery. For many events, call {@link startRedrive}.
   *
   * @throws TypeError for a handler that no process has registered, or an invalid time.
   */
  async redrive(query: RedriveQuery): Promise<SelectionResult> {
    const result = await this.redrives.redrive(query);
    this.worker.wake();
    return result;
  }

  /**
   * Starts a redrive that makes the deliveries of the matching events due, `ratePerSecond` events per second. Resolves
   * when the redrive is stored. One process works on the redrive. If that process closes or dies, another process
   * continues the redrive within about `worker.leaseMs`. With `worker.background: false`, a process works on the
   * redrive only during {@link runDue}. The redrive ignores events that are received after its start, and deliveries
   * that are attempted or skipped after its start, so it redrives each delivery at most once. In all other respects, it
   * works like {@link redrive}.
   *
   * @throws TypeError if no process has registered a handler of the query, if the rate or a time is invalid, or if the
   *   query has more than 20,000 characters as JSON.
   * @example
   * ```ts
   * const { id } = await inbox.startRedrive({ handler: 'transaction.completed#markPaid' }, { ratePerSecond: 10 });
   * ```
   */
  async startRedrive(
    query: Omit<RedriveQuery, 'dryRun'>,
    options: RedriveJobOptions = {},
  ): Promise<RedriveJob> {
    return this.jobs.start(query, options);
  }

  /**
   * Returns the redrives that {@link startRedrive} started in any process, at most the 100 that changed last. The list
   * begins with the redrive that was started last. The inbox stores a redrive for 30 days after the redrive has ended.
   */
  async redriveJobs(): Promise<RedriveJob[]> {
    return this.jobs.list();
  }

  /**
   * Stops a redrive, whichever process works on it. The deliveries that the redrive has already made due still run. The
   * redrive makes at most one more batch due, with the events of about one second.
   *
   * @returns whether the redrive was running
   */
  async stopRedrive(id: string): Promise<boolean> {
    return this.jobs.stop(id);
  }

  /**
   * Runs the deliveries that are due, and deliveries that become due during the call. Resolves once no delivery is due
   * or running, or after `forMs` milliseconds (1 to 900,000, default 10,000).
   *
   * Use this method, with `worker.background: false`, on platforms that freeze a process between requests. Call it
   * before you respond to a webhook request, and on a schedule for retries. `runDue()` respects the `concurrency` of
   * handlers and runs no paused handlers. `runDue()` also runs due polls of expected payments, but the result does not
   * count these polls. After `forMs`, no attempt starts, but running handlers continue. If the process is then frozen
   * for `worker.leaseMs`, another process runs the deliveries of these handlers again.
   *
   * @throws TypeError if `forMs` is out of bounds. PaymentsError `inbox_unavailable` before the application has started
   *   and while it closes.
   * @example
   * ```ts
   * const { done, failed, more } = await inbox.runDue({ forMs: 5000 });
   * ```
   */
  async runDue({ forMs = 10_000 }: { readonly forMs?: number } = {}): Promise<RunDueResult> {
    assertWhole('forMs', forMs, { max: 900_000, unit: 'milliseconds' });
    return this.worker.runDue(forMs);
  }

  /**
   * Skips matching deliveries, by default only dead deliveries. Skipped deliveries stay in the inbox and do not run.
   *
   * @throws TypeError for an invalid time.
   */
  async skip(query: DeliveryQuery): Promise<SelectionResult> {
    return this.redrives.skip(query);
  }

  /**
   * Pauses a handler in every process, or all handlers if `handler` is `*`. No process claims deliveries of a paused
   * handler. Running attempts continue, and events are still received. `@payments/poll` and `*` also pause the polls of
   * expected payments. A pause replaces an earlier pause of the same handler. {@link stats} returns the pauses.
   *
   * @throws TypeError if no process has registered a handler of that name, or a field of `facts` is out of bounds.
   */
  async pause(handler = '*', facts: PauseFacts = {}): Promise<void> {
    const { who, reason, until } = facts;
    if (who !== undefined) assertText('who', who, MAX_WHO);
    if (reason !== undefined) assertText('reason', reason, MAX_NOTE);
    if (until !== undefined) {
      assertDate('until', until);
      if (until.getTime() <= this.runtime.now()) {
        throw new TypeError(
          '"until" must be in the future: it is the time at which the pause ends.',
        );
      }
    }
    if (handler !== '*' && handler !== POLL_HANDLER && this.registry.get(handler) === undefined) {
      await this.catalog.refresh();
      const known = this.catalog.names();
      if (!known.includes(handler)) throw unknownHandler(handler, known);
    }
    await this.store.pause(handler, true, facts);
  }

  /**
   * Ends the pause of a handler. With `*`, ends the pause of all handlers, but not the pauses of single handlers.
   * Deliveries that became due during the pause run with the handler's `concurrency`, the earliest due first, and delay
   * no other handler.
   */
  async resume(handler = '*'): Promise<void> {
    await this.store.pause(handler, false);
    this.worker.wake();
  }

  /**
   * Adds what an operator did to the audit trail. All processes share the audit trail. If the inbox is durable, the
   * audit trail survives a restart. The inbox adds no entries by itself: the console adds the actions of its operators,
   * and an application must add the actions on its own pages. The inbox stores the last 10,000 actions and the last
   * 10,000 views of payloads for 90 days.
   *
   * If the process can die during an action, record the action twice. Before the action, record it with the
   * `outcome` `unknown`. After the action, record the result, with the id of the first entry as `replaces`.
   *
   * @param replaces id of an entry that the new entry replaces, 1 to 200 characters. Default: none
   * @returns the id of the entry
   * @throws TypeError if `replaces` is out of bounds.
   */
  async recordAudit(entry: AuditEntry, replaces?: string): Promise<string> {
    return this.#audit.record(entry, replaces);
  }

  /**
   * Returns the last actions of operators, the last views of payloads, or both, newest first, at most `limit` (1 to
   * 1,000, default 100).
   *
   * @throws TypeError if `limit` is out of bounds.
   */
  async audit(show: 'all' | 'actions' | 'views' = 'all', limit = 100): Promise<StoredAuditEntry[]> {
    return this.#audit.list(show, limit);
  }

  /**
   * Deletes one batch of old events now, according to `worker.retainEventsMs` and `worker.retainIdsMs`. Each process
   * also deletes old events every minute, unless `worker.background` is `false`.
   *
   * @param limit how many events to change at most, 1 to 10,000
   * @returns how many events it changed; if the number is `limit`, there may be more old events.
   * @throws TypeError if `limit` is out of bounds.
   */
  async prune(limit = 500): Promise<number> {
    assertWhole('limit', limit, { max: 10_000, unit: 'events' });
    return this.maintenance.prune(limit);
  }
}
