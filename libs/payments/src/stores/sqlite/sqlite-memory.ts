import type { CommitResult, Lease } from '../../inbox/store/inbox-store.js';
import { commitOnce } from './sql/commit.js';
import { createTables } from './sql/schema.js';
import type { OperationName } from './sqlite-operations.js';
import type { EngineHooks, SqliteEngine } from './sqlite-engine.js';
import { protect } from './sqlite-transaction.js';
import type { SqliteTransaction } from './sqlite-transaction.js';
import { ruleOf, runAtLatestClock, runOutside } from './thread/batch.js';
import { loadDriver, SqliteConnection, toError, unavailable } from './thread/connection.js';
import type { DriverDatabase, StoredClock } from './thread/connection.js';
import { storedClock } from './thread/database-file.js';
import type { Call, CallResponse } from './thread/messages.js';
import { adopt } from './thread/sent-values.js';
import type { SqliteSql } from './thread/sqlite-sql.js';

/**
 * The clock that the times of a database in memory are relative to, instead of the clock of the machine: an operation waits
 * for no lock.
 */
const machineMs = (): number => 0;

/** A database in memory. Stores that share it use it in turns, because its transactions are not of one store alone. */
export class MemoryDatabase {
  /** The connection of commits. */
  readonly committer: SqliteConnection;
  /** Called when a delivery or a poll may have become due. */
  readonly listeners = new Set<() => void>();
  #last: Promise<unknown> = Promise.resolve();

  private constructor(private readonly database: DriverDatabase) {
    this.committer = this.connect();
    this.committer.exec('PRAGMA foreign_keys = ON');
    createTables(this.committer, 0);
    protect(database, () => this.committer.inUse);
  }

  static async open(): Promise<MemoryDatabase> {
    return new MemoryDatabase(new (await loadDriver())(':memory:'));
  }

  /** A connection with prepared statements and cached values of its own. */
  connect(): SqliteConnection {
    return new SqliteConnection(this.database, machineMs);
  }

  /** Runs `work` when all work before it has ended: an operation may be an async function. */
  inTurn<T>(work: () => T | Promise<T>): Promise<T> {
    const result = this.#last.then(work);
    this.#last = result.catch(() => {});
    return result;
  }

  wake(): void {
    for (const listener of this.listeners) listener();
  }

  /** Closes the database after all work, and deletes its content. */
  close(): Promise<void> {
    return this.inTurn(() => this.database.close());
  }
}

/** A database in memory, on the event loop. */
export class SqliteMemory implements SqliteEngine {
  #database: MemoryDatabase | undefined;
  #connection: SqliteConnection | undefined;

  constructor(
    private readonly hooks: EngineHooks,
    /** A database that outlives the store. Default: one of its own. */
    private readonly given?: MemoryDatabase,
  ) {}

  async open(): Promise<StoredClock> {
    this.#database = this.given ?? (await MemoryDatabase.open());
    this.#connection = this.#database.connect();
    return storedClock(this.#connection);
  }

  async run(name: OperationName, args: readonly unknown[]): Promise<unknown> {
    const call: Call = { number: 1, name, args, times: this.hooks.times() };
    const rule = ruleOf(call);
    if (rule === 'read') return this.#database!.inTurn(() => this.#runOutside(call));
    return rule === 'sliced' ? this.#runOutside(call) : this.#write(call);
  }

  async #runOutside(call: Call): Promise<unknown> {
    return this.#valueOf(
      await runOutside(
        this.#connection!,
        call,
        0,
        <T>(work: (sql: SqliteSql) => T | Promise<T>) =>
          this.#write({ ...call, name: 'transaction', args: [work] }) as Promise<T>,
      ),
    );
  }

  #write(call: Call): Promise<unknown> {
    return this.#database!.inTurn(async () => {
      const { responses, ahead } = await runAtLatestClock(this.#connection!, [call], 0);
      if (ahead !== null) this.hooks.onClock(ahead);
      return this.#valueOf(responses[0]!);
    });
  }

  #valueOf(response: CallResponse): unknown {
    if ('failure' in response) throw toError(response.failure);
    if (response.wakes) this.#database!.wake();
    return adopt(response.value);
  }

  commit<R>(lease: Lease, work: (tx: SqliteTransaction) => R): Promise<CommitResult<R>> {
    return this.#database!.inTurn(() => {
      const committed = commitOnce(this.#database!.committer, lease, work, this.hooks.times());
      if (committed === 'busy') throw unavailable('could not begin a transaction.');
      if (committed.nextDue) this.#database!.wake();
      return committed;
    });
  }

  listen(on: boolean): void {
    if (on) this.#database?.listeners.add(this.hooks.onWake);
    else this.#database?.listeners.delete(this.hooks.onWake);
  }

  async close(): Promise<void> {
    this.listen(false);
    if (this.given === undefined) await this.#database?.close();
    else await this.#database?.inTurn(() => {});
  }
}
