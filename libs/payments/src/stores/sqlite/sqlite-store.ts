import type { PaymentsRuntime } from '../../runtime/payments-runtime.js';
import type {
  ClaimedDelivery,
  ClaimRequest,
  CommitResult,
  DeliverySelection,
  EventPage,
  HandlerCatalog,
  HeartbeatResult,
  InboxActivity,
  IncomingEvent,
  InboxDefinition,
  InboxStats,
  InboxStore,
  Lease,
  SettleResult,
  StoredEvent,
  StoreReceipt,
  SuspectRequest,
  WorkerRegistration,
} from '../../inbox/store/inbox-store.js';
import { countActivity } from '../../inbox/store/activity.js';
import { failures, listPage } from './event-lists.js';
import { toActivitySlice } from './sql/activity.js';
import { FORGET_SLICE, toCatalog } from './sql/catalog.js';
import { toClaimed } from './sql/claim.js';
import { toEventMessage, toReceipts } from './sql/receive.js';
import { leaseName } from './sql/settle.js';
import { toStats } from './sql/stats.js';
import { toEvent } from './sql/stored-rows.js';
import { SqliteExpectations } from './sqlite-expectations.js';
import { resolveSqliteOptions } from './sqlite-options.js';
import type { SqliteInboxOptions, SqliteSettings } from './sqlite-options.js';
import { SqliteSession } from './sqlite-session.js';
import type { SqliteTransaction } from './sqlite-transaction.js';
import type { ResponseOf } from './thread/operations.js';

/** How many events one transaction prunes at most, because a receive that arrives meanwhile waits for it. */
const PRUNE_SLICE = 100;

/**
 * Stores events in a SQLite file, through `node:sqlite`: durable against a crash and a power loss, for one machine,
 * without a server or a native dependency. Several processes of the machine may share the file. The database runs in a
 * thread of its own, so that a slow disk never blocks the event loop, and operations that arrive together share one
 * transaction.
 *
 * `context.commit` passes a {@link SqliteTransaction} on this file to its callback, for the application's own tables.
 *
 * The application opens the file when it boots. Opening fails with a PaymentsError: `options_invalid` on a SQLite with
 * the WAL-reset bug, `inbox_unavailable` if the file cannot be used.
 *
 * @throws PaymentsError `options_invalid`.
 *
 * @example
 * ```ts
 * PaymentsModule.forRoot({
 *   ...credentials,
 *   inbox: sqliteInbox({ file: 'payments-inbox.db' }),
 * });
 * ```
 */
export function sqliteInbox(options: SqliteInboxOptions): InboxDefinition {
  const settings = resolveSqliteOptions(options);
  return { name: 'sqlite', create: (runtime) => new SqliteStore(settings, runtime) };
}

/** The store of `sqliteInbox()`: runs its operations in the thread, and commits on the event loop. */
export class SqliteStore implements InboxStore<SqliteTransaction> {
  readonly capabilities = Object.freeze({
    durable: true,
    shared: true,
    transactional: true,
    ownClock: false,
  });
  readonly expectations: SqliteExpectations;
  readonly #session: SqliteSession;
  /** The kept event that was read last; see `prune`. */
  #lastKept = 0;

  constructor(
    settings: SqliteSettings,
    private readonly runtime: PaymentsRuntime,
  ) {
    this.#session = new SqliteSession(settings, runtime);
    this.expectations = new SqliteExpectations(this.#session);
  }

  open(): Promise<void> {
    return this.#session.open();
  }

  close(): Promise<void> {
    return this.#session.close();
  }

  async register({ id, leaseMs, handlers }: WorkerRegistration): Promise<HandlerCatalog> {
    const declared = handlers.map(({ name, patterns }) => ({ name, patterns }));
    return toCatalog(await this.#session.run('register', { id, leaseMs, handlers: declared }));
  }

  async heartbeat(worker: string): Promise<HeartbeatResult> {
    const { alive, suspects, freed } = await this.#session.run('heartbeat', { worker });
    if (freed > 0) this.#session.wake();
    return { alive, suspects };
  }

  async retire(worker: string, graceMs: number): Promise<void> {
    await this.#session.run('retire', { worker, graceMs });
  }

  async catalog(): Promise<HandlerCatalog> {
    return toCatalog(await this.#session.run('catalog', null));
  }

  async forgetHandler(handler: string): Promise<number | null> {
    let skipped = 0;
    for (let last = FORGET_SLICE; last === FORGET_SLICE; skipped += last) {
      const slice = await this.#session.run('forgetHandler', { handler });
      if (slice === null) return skipped === 0 ? null : skipped;
      last = slice;
    }
    return skipped;
  }

  async receive(events: readonly IncomingEvent[]): Promise<StoreReceipt[]> {
    const receipts = await this.#session.run('receive', {
      events: events.map(toEventMessage),
    });
    if (receipts.some(({ pending }) => pending)) this.#session.wake();
    return toReceipts(receipts, events);
  }

  async claim(request: ClaimRequest): Promise<ClaimedDelivery[]> {
    const claimed = await this.#session.run('claim', request);
    return Array.from(claimed, (delivery) => toClaimed(delivery));
  }

  async claimSuspect(request: SuspectRequest): Promise<ClaimedDelivery | null> {
    const claimed = await this.#session.run('claimSuspect', request);
    return claimed && toClaimed(claimed);
  }

  async newerHandled(lease: Lease): Promise<boolean> {
    return this.#session.run('newerHandled', { lease: leaseName(lease) });
  }

  async complete(lease: Lease): Promise<SettleResult> {
    return this.#settled(await this.#session.run('complete', { lease: leaseName(lease) }));
  }

  async fail(
    lease: Lease,
    { error, retryInMs }: Parameters<InboxStore['fail']>[1],
  ): Promise<SettleResult> {
    const result = await this.#session.run('fail', { lease: leaseName(lease), error, retryInMs });
    return this.#settled(result, retryInMs !== null);
  }

  async release(lease: Lease, dueInMs = 0): Promise<SettleResult> {
    return this.#settled(
      await this.#session.run('release', { lease: leaseName(lease), dueInMs }),
      true,
    );
  }

  async commit<R>(
    lease: Lease,
    work: (tx: SqliteTransaction) => R | Promise<R>,
  ): Promise<CommitResult<R>> {
    // The type is right, because the commit rejects a callback that returns a promise.
    const { result, nextDue } = (await this.#session.commit(lease, work)) as CommitResult<R>;
    if (nextDue) this.#session.wake();
    return { result, nextDue };
  }

  async nextDueInMs(handlers: readonly string[]): Promise<number | null> {
    return this.#session.run('nextDue', { handlers });
  }

  onWake(listener: () => void): () => void {
    return this.#session.onWake(listener);
  }

  async find(company: string, id: string): Promise<StoredEvent | undefined> {
    const found = await this.#session.run('find', { company, id });
    return found && toEvent(found);
  }

  async list(query: Parameters<InboxStore['list']>[0]): Promise<EventPage> {
    return listPage(query, this.#session);
  }

  async stats(): Promise<InboxStats> {
    return toStats(await this.#session.run('stats', null));
  }

  async failures(): ReturnType<InboxStore['failures']> {
    return failures(this.#session);
  }

  async activity(minutes: number, bodiesMs: number): Promise<InboxActivity> {
    const now = this.runtime.now();
    return countActivity(minutes, now, now - bodiesMs, async (before, fromMinute) =>
      toActivitySlice(await this.#session.run('activitySlice', { before, fromMinute })),
    );
  }

  async redrive(
    selections: readonly DeliverySelection[],
    { force, dueInMs, fulfils = [] }: Parameters<InboxStore['redrive']>[1],
  ): Promise<number> {
    const changed = await this.#session.run('redrive', { selections, force, dueInMs, fulfils });
    if (changed > 0) this.#session.wake();
    return changed;
  }

  async skip(selections: readonly DeliverySelection[]): Promise<number> {
    const skipped = await this.#session.run('skip', { selections });
    if (skipped > 0) this.#session.wake();
    return skipped;
  }

  async pause(handler: string, paused: boolean): Promise<void> {
    await this.#session.run('pause', { handler, paused });
    if (!paused) this.#session.wake();
  }

  async prune(request: Parameters<InboxStore['prune']>[0]): Promise<number> {
    let changed = 0;
    let done = false;
    while (!done && changed < request.limit) {
      const limit = Math.min(PRUNE_SLICE, request.limit - changed);
      const slice = { ...request, limit, lastKept: this.#lastKept };
      const pruned: ResponseOf<'prune'> = await this.#session.run('prune', slice);
      changed += pruned.changed;
      ({ done, lastKept: this.#lastKept } = pruned);
    }
    return changed;
  }

  /** Wakes the listeners if a delivery may be due: the next of its key, or itself if it is `pending` again. */
  #settled({ settled, nextDue }: SettleResult, pending = false): SettleResult {
    if (nextDue || (settled && pending)) this.#session.wake();
    return { settled, nextDue };
  }
}
