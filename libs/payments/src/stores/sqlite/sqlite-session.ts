import { ModuleLogger } from '../../errors/module-logger.js';
import type { PaymentsRuntime } from '../../runtime/payments-runtime.js';
import type { CommitResult, Lease } from '../../inbox/store/inbox-store.js';
import { SqliteCommitter } from './sql/commit.js';
import { loadDriver, machineMs, toError, toFailure, unavailable } from './thread/connection.js';
import type { SqliteConnection, StoredClock, Times } from './thread/connection.js';
import type { SqliteSettings } from './sqlite-options.js';
import type { SqliteTransaction } from './sqlite-transaction.js';
import { SqliteClient } from './thread/client.js';
import {
  isOldSqlite,
  oldSqliteReason,
  openCommitter,
  sharedFilesWarning,
} from './thread/database-file.js';
import type { OperationName, RequestOf, ResponseOf } from './thread/operations.js';

/**
 * The database file while a store uses it: the thread that runs the operations, the connection for commits on the event
 * loop, the clock, and the listeners for new deliveries.
 */
export class SqliteSession {
  readonly #logger = new ModuleLogger('PaymentInbox');
  readonly #listeners = new Set<() => void>();
  readonly #clock: StoreClock;
  readonly #client: SqliteClient;
  readonly #committer: SqliteCommitter;
  #connection: SqliteConnection | undefined;
  #stage: 'new' | 'open' | 'closed' = 'new';

  constructor(
    private readonly settings: SqliteSettings,
    runtime: PaymentsRuntime,
  ) {
    this.#clock = new StoreClock(runtime);
    this.#client = new SqliteClient(
      settings,
      () => this.#clock.read(),
      () => this.wake(),
      (clock) => this.#clock.advanceTo(clock),
    );
    this.#committer = new SqliteCommitter(
      this.#client,
      () => this.#connection!,
      settings.busyTimeoutMs,
      () => this.#clock.read(),
    );
  }

  async open(): Promise<void> {
    const { sqliteVersion, clock } = await this.#client.open();
    if (isOldSqlite(sqliteVersion)) {
      this.#logger.warn(
        `${oldSqliteReason(sqliteVersion)}. The inbox uses it because of "allowOldSqlite".`,
      );
    }
    this.#clock.start(clock);
    try {
      this.#connection = openCommitter(await loadDriver(), this.settings.file);
    } catch (error) {
      await this.#client.close();
      throw toError(toFailure(error));
    }
    const warning = sharedFilesWarning(this.settings.file);
    if (warning !== null) this.#logger.warn(warning);
    this.#stage = 'open';
    // Stores this process's clock for the other processes. If that fails, the first write stores the clock.
    this.run('sync', null).catch(() => {});
  }

  async close(): Promise<void> {
    this.#stage = 'closed';
    await this.#committer.idle();
    this.#listeners.clear();
    this.#connection?.close();
    this.#connection = undefined;
    await this.#client.close();
  }

  /** Runs an operation in the thread. */
  async run<Name extends OperationName>(
    name: Name,
    request: RequestOf<Name>,
  ): Promise<ResponseOf<Name>> {
    this.#check();
    return this.#client.call(name, request);
  }

  /** Runs `work` on the event loop and settles the lease, in one transaction. */
  async commit<R>(lease: Lease, work: (tx: SqliteTransaction) => R): Promise<CommitResult<R>> {
    this.#check();
    return this.#committer.commit(lease, work);
  }

  /** The time by the clocks of this process. */
  times(): Times {
    this.#check();
    return this.#clock.read();
  }

  onWake(listener: () => void): () => void {
    // A new function for each call, because a Set would keep a listener that is added twice only once.
    const added = (): void => listener();
    if (this.#listeners.size === 0) this.#client.listen(true);
    this.#listeners.add(added);
    return () => {
      if (this.#listeners.delete(added) && this.#listeners.size === 0) this.#client.listen(false);
    };
  }

  wake(): void {
    for (const listener of this.#listeners) listener();
  }

  #check(): void {
    if (this.#stage === 'new') throw unavailable('is not open yet.');
    if (this.#stage === 'closed') throw unavailable('is closed.');
  }
}

/**
 * The store clock of one process: monotonic, so that a jump of the wall clock neither delays a delivery nor makes it
 * due. The process continues the clock in the file. It uses the wall clock only for the time since the clock was
 * stored.
 */
export class StoreClock {
  #offset: number | undefined;

  constructor(private readonly runtime: PaymentsRuntime) {}

  /** Continues the stored clock. Only the first call has an effect. */
  start(stored: StoredClock): void {
    if (this.#offset !== undefined) return;
    const wall = Math.floor(this.runtime.now());
    const clock = stored.wall === 0 ? wall : stored.clock + Math.max(0, wall - stored.wall);
    this.#offset = clock - Math.floor(this.runtime.monotonic());
  }

  /** Sets the clock forward to the clock of another process; never back. */
  advanceTo(clock: number): void {
    const behind = clock - this.read().clock;
    if (behind > 0) this.#offset = (this.#offset ?? 0) + behind;
  }

  read(): Times {
    const monotonic = this.runtime.monotonic();
    const wall = Math.floor(this.runtime.now());
    const clock = Math.floor(monotonic) + (this.#offset ?? 0);
    return { wall, clock, processOffset: monotonic - machineMs() };
  }
}
