import type { PaymentsRuntime } from '../../runtime/payments-runtime.js';
import type {
  CommitResult,
  EventPage,
  HandlerCatalog,
  IncomingEvent,
  InboxCapabilities,
  InboxDefinition,
  InboxStore,
  Lease,
  SettleResult,
  StoreReceipt,
  WorkerRegistration,
} from '../../inbox/store/inbox-store.js';
import { parseSeq } from '../../inbox/store/list-arguments.js';
import { FORGET_SLICE } from './sql/catalog.js';
import { SqliteExpectations } from './sqlite-expectations.js';
import type { ArgumentsOf, OperationName, ResultOf } from './sqlite-operations.js';
import type { MemoryDatabase } from './sqlite-memory.js';
import { MEMORY, resolveSqliteOptions } from './sqlite-options.js';
import type { SqliteInboxOptions, SqliteSettings } from './sqlite-options.js';
import { SqliteSession } from './sqlite-session.js';
import type { SqliteTransaction } from './sqlite-transaction.js';
import { leaseName, toReceipt, toSent } from './thread/sent-values.js';

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

/**
 * The store of `sqliteInbox()`: the thread runs its operations, which are the methods of `SqliteOperations`, and the event
 * loop runs its commits.
 */
export class SqliteStore implements InboxStore<SqliteTransaction> {
  readonly capabilities: InboxCapabilities;
  readonly expectations: SqliteExpectations;
  readonly heartbeat = this.#forward('heartbeat');
  readonly retire = this.#forward('retire');
  readonly catalog = this.#forward('catalog');
  readonly claim = this.#forward('claim');
  readonly claimSuspect = this.#forward('claimSuspect');
  readonly nextDueInMs = this.#forward('nextDueInMs');
  readonly find = this.#forward('events.find');
  readonly failures = this.#forward('events.failures');
  readonly stats = this.#forward('events.stats');
  readonly activity = this.#forward('events.activity');
  readonly redrive = this.#forward('redrive');
  readonly skip = this.#forward('skip');
  readonly pause = this.#forward('pause');
  readonly #session: SqliteSession;
  /** The kept event that was read last; see `prune`. */
  #lastKept = 0;

  constructor(
    settings: SqliteSettings,
    runtime: PaymentsRuntime,
    /** For tests of several processes: a database in memory that outlives the store. */
    memory?: MemoryDatabase,
  ) {
    const outlives = settings.file !== MEMORY || memory !== undefined;
    this.capabilities = Object.freeze({
      durable: outlives,
      shared: outlives,
      transactional: true,
      ownClock: false,
    });
    this.#session = new SqliteSession(settings, runtime, memory);
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
    return this.#session.run('register', { id, leaseMs, handlers: declared });
  }

  async forgetHandler(handler: string): Promise<number | null> {
    let skipped = 0;
    for (let last = FORGET_SLICE; last === FORGET_SLICE; skipped += last) {
      const slice = await this.#session.run('forgetSlice', handler);
      if (slice === null) return skipped === 0 ? null : skipped;
      last = slice;
    }
    return skipped;
  }

  async receive(events: readonly IncomingEvent[]): Promise<StoreReceipt[]> {
    const receipts = await this.#session.run('receive', events.map(toSent));
    return receipts.map((receipt, index) => toReceipt(receipt, events[index]!));
  }

  newerHandled(lease: Lease): Promise<boolean> {
    return this.#session.run('newerHandled', leaseName(lease));
  }

  complete(lease: Lease): Promise<SettleResult> {
    return this.#session.run('complete', leaseName(lease));
  }

  fail(lease: Lease, failure: Parameters<InboxStore['fail']>[1]): Promise<SettleResult> {
    return this.#session.run('fail', leaseName(lease), failure);
  }

  release(lease: Lease, dueInMs = 0): Promise<SettleResult> {
    return this.#session.run('release', leaseName(lease), dueInMs);
  }

  async commit<R>(
    lease: Lease,
    work: (tx: SqliteTransaction) => R | Promise<R>,
  ): Promise<CommitResult<R>> {
    // The type is right, because the commit rejects a callback that returns a promise.
    return (await this.#session.commit(lease, work)) as CommitResult<R>;
  }

  onWake(listener: () => void): () => void {
    return this.#session.onWake(listener);
  }

  async list(query: Parameters<InboxStore['list']>[0]): Promise<EventPage> {
    // Here, because the thread reports each error as a PaymentsError.
    if (query.after !== null) parseSeq(query.after);
    return this.#session.run('events.list', query);
  }

  async prune(request: Parameters<InboxStore['prune']>[0]): Promise<number> {
    let changed = 0;
    let done = false;
    while (!done && changed < request.limit) {
      const limit = Math.min(PRUNE_SLICE, request.limit - changed);
      const slice = { ...request, limit, lastKept: this.#lastKept };
      const pruned: ResultOf<'pruneSlice'> = await this.#session.run('pruneSlice', slice);
      changed += pruned.changed;
      ({ done, lastKept: this.#lastKept } = pruned);
    }
    return changed;
  }

  #forward<Name extends OperationName>(name: Name) {
    return (...args: ArgumentsOf<Name>): Promise<ResultOf<Name>> =>
      this.#session.run(name, ...args);
  }
}
