import type { PaymentsRuntime } from '../../runtime/payments-runtime.js';
import type {
  CommitResult,
  InboxCapabilities,
  InboxDefinition,
  InboxStore,
  Lease,
  NewExpectation,
  RecordStore,
} from '../../inbox/store/inbox-store.js';
import { SqliteFile } from './sqlite-file.js';
import { SqliteMemory } from './sqlite-memory.js';
import type { MemoryDatabase } from './sqlite-memory.js';
import { forwarding } from './sqlite-operations.js';
import type { OperationName, RunOperation } from './sqlite-operations.js';
import { MEMORY, resolveSqliteOptions } from './sqlite-options.js';
import type { SqliteInboxOptions, SqliteSettings } from './sqlite-options.js';
import { Pruning } from '../sql/prune.js';
import type { Pruned } from '../sql/prune.js';
import type { SqliteTransaction } from './sql/commit.js';
import { expectWithin } from './sql/expectations.js';
import { StoreClock } from './store-clock.js';
import { machineMs, SqliteConnection, unavailable } from './thread/connection.js';
import type { DriverDatabase, Times } from './thread/connection.js';

/**
 * Stores events in a SQLite file, through `node:sqlite`. Stored events survive a crash and a power loss. The inbox is
 * for one machine and needs no server and no native dependency. Several processes of the machine may share the file.
 * The database runs in its own thread, so that a slow disk never blocks the event loop. Operations that arrive together
 * share one transaction.
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
 * The store of `sqliteInbox()`. The operations, which `OPERATIONS` lists, run in the thread of the database, and
 * commits run on the event loop. For a database in memory, operations and commits run on the event loop.
 */
export class SqliteStore extends forwarding('') {
  override readonly capabilities: InboxCapabilities;
  override readonly expectations: SqliteExpectations;
  override readonly records: RecordStore;
  readonly #listeners = new Set<() => void>();
  readonly #clock: StoreClock;
  readonly #pruning = new Pruning();
  readonly #engine: SqliteFile | SqliteMemory;
  #stage: 'new' | 'open' | 'closed' = 'new';

  constructor(
    settings: SqliteSettings,
    runtime: PaymentsRuntime,
    /** For tests of several processes: a database in memory that outlives the store. */
    memory?: MemoryDatabase,
  ) {
    const run = (name: OperationName, args: readonly unknown[]) => this.#run(name, args);
    super(run);
    const inMemory = settings.file === MEMORY;
    const outlives = !inMemory || memory !== undefined;
    this.capabilities = Object.freeze({
      durable: outlives,
      shared: outlives,
      transactional: true,
      ownClock: false,
    });
    const wake = () => {
      for (const listener of this.#listeners) listener();
    };
    this.#clock = new StoreClock(runtime, inMemory ? () => 0 : machineMs);
    this.#engine = inMemory
      ? new SqliteMemory(this.#clock, wake, memory)
      : new SqliteFile(settings, this.#clock, wake);
    this.records = new (forwarding('records.'))(run);
    this.expectations = new SqliteExpectations(run, () => {
      this.#check();
      return this.#clock.read();
    });
  }

  override async open(): Promise<void> {
    this.#clock.start(await this.#engine.open());
    this.#stage = 'open';
    // Stores this process's clock for the other processes. If that fails, the first write stores the clock.
    this.#run('sync', []).catch(() => {});
  }

  override async close(): Promise<void> {
    this.#stage = 'closed';
    await this.#engine.close();
    this.#listeners.clear();
  }

  override async commit<R>(
    lease: Lease,
    work: (tx: SqliteTransaction) => R | Promise<R>,
  ): Promise<CommitResult<R>> {
    this.#check();
    // The type is right, because the commit rejects a callback that returns a promise.
    return (await this.#engine.commit(lease, work)) as CommitResult<R>;
  }

  override prune(request: Parameters<InboxStore['prune']>[0]): Promise<number> {
    return this.#pruning.prune(
      request,
      (slice) => this.#run('pruneSlice', [slice]) as Promise<Pruned>,
    );
  }

  override onWake(listener: () => void): () => void {
    // Wraps the listener in a new function, because a Set would contain a listener that is added twice only once.
    const added = (): void => listener();
    this.#listeners.add(added);
    return () => void this.#listeners.delete(added);
  }

  async #run(name: OperationName, args: readonly unknown[]): Promise<unknown> {
    this.#check();
    return this.#engine.run(name, args);
  }

  #check(): void {
    if (this.#stage === 'new') throw unavailable('is not open yet.');
    if (this.#stage === 'closed') throw unavailable('is closed.');
  }
}

/** Stores expectations in the file: in the thread, or on the event loop in a transaction of the application. */
class SqliteExpectations extends forwarding('expectations.') {
  constructor(
    run: RunOperation,
    private readonly times: () => Times,
  ) {
    super(run);
  }

  /** In a transaction of the application, the store needs no wake-up, because the thread notices the commit. */
  override async expect(expectation: NewExpectation, tx?: unknown): Promise<boolean> {
    if (tx === undefined) return super.expect(expectation);
    return inTransaction(tx, (connection) => expectWithin(connection, expectation, this.times()));
  }
}

/**
 * The part of an application's transaction that the store uses. `node:sqlite` has one of the two flags, and
 * `better-sqlite3` has the other.
 */
interface ApplicationTransaction extends DriverDatabase {
  readonly isTransaction?: unknown;
  readonly inTransaction?: unknown;
}

function inTransaction<T>(tx: unknown, work: (connection: SqliteConnection) => T): T {
  const found = tx as Partial<ApplicationTransaction> | null;
  if (typeof found?.prepare !== 'function') {
    throw new TypeError(
      '"tx" has no method "prepare". For a SQLite inbox, pass the transaction that context.commit passes to its ' +
        "callback, or your own connection to the inbox's file, on which you have run BEGIN: a DatabaseSync of node:sqlite or " +
        'a Database of better-sqlite3.',
    );
  }
  if (found.isTransaction === false || found.inTransaction === false) {
    throw new TypeError(
      '"tx" has no open transaction. Run BEGIN first, so that the expectation is stored together with your own writes.',
    );
  }
  try {
    return work(new SqliteConnection(found as DriverDatabase));
  } catch (error) {
    if (!/no such table: payments_inbox_/.test((error as Error).message)) throw error;
    throw new TypeError(
      '"tx" belongs to a connection to another file, not to the file of the inbox. Open your connection with the ' +
        'same path as the option "file" of sqliteInbox().',
      { cause: error },
    );
  }
}
