import type { CommitResult, Lease } from '../../inbox/store/inbox-store.js';
import { commitOnce, protect } from './sql/commit.js';
import type { SqliteTransaction } from './sql/commit.js';
import { migrate } from './migrate.js';
import type { OperationName } from './sqlite-operations.js';
import type { StoreClock } from './store-clock.js';
import { runBatch, Turns } from './thread/batch.js';
import { loadDriver, SqliteConnection, toError, unavailable } from './thread/connection.js';
import type { DriverDatabase, StoredClock } from './thread/connection.js';
import { storedClock } from './thread/database-file.js';
import { adopt } from './thread/messages.js';
import type { Call } from './thread/messages.js';

/**
 * Replaces the clock of the machine by a constant. An operation in memory never waits for a lock, so its time needs no
 * correction.
 */
const machineMs = (): number => 0;

/**
 * A database in memory. Stores that share the database take turns. Otherwise, a transaction could contain statements of
 * several stores.
 */
export class MemoryDatabase {
  readonly committer: SqliteConnection;
  /** The functions to call when a delivery or a poll may have become due. */
  readonly listeners = new Set<() => void>();
  readonly turns = new Turns();

  private constructor(private readonly database: DriverDatabase) {
    this.committer = this.connect();
    this.committer.exec('PRAGMA foreign_keys = ON');
    migrate(this.committer, 0);
    protect(database, () => this.committer.inUse);
  }

  static async open(): Promise<MemoryDatabase> {
    return new MemoryDatabase(new (await loadDriver())(':memory:'));
  }

  /** Returns a connection with its own prepared statements and cached values. */
  connect(): SqliteConnection {
    return new SqliteConnection(this.database, machineMs);
  }

  wake(): void {
    for (const listener of this.listeners) listener();
  }

  /** Waits for all earlier work, and closes the database, which deletes its content. */
  close(): Promise<void> {
    return this.turns.take(() => this.database.close());
  }
}

/** A store on a database in memory, which runs on the event loop. */
export class SqliteMemory {
  #database: MemoryDatabase | undefined;
  #connection: SqliteConnection | undefined;

  constructor(
    private readonly clock: StoreClock,
    private readonly onWake: () => void,
    /** A database that outlives the store. Default: the store creates its own database. */
    private readonly given?: MemoryDatabase,
  ) {}

  async open(): Promise<StoredClock> {
    this.#database = this.given ?? (await MemoryDatabase.open());
    this.#database.listeners.add(this.onWake);
    this.#connection = this.#database.connect();
    return storedClock(this.#connection);
  }

  async run(name: OperationName, args: readonly unknown[]): Promise<unknown> {
    const { turns } = this.#database!;
    const connection = this.#connection!;
    const call: Call = { name, args };
    const times = this.clock.read();
    const { outcomes, wakes, ahead } = await turns.take(() =>
      runBatch(connection, [call], times, 0),
    );
    if (ahead !== null) this.clock.advanceTo(ahead);
    if (wakes) this.#database!.wake();
    const [outcome] = outcomes;
    if ('failure' in outcome!) throw toError(outcome.failure);
    return adopt(outcome!.value);
  }

  commit<R>(lease: Lease, work: (tx: SqliteTransaction) => R): Promise<CommitResult<R>> {
    return this.#database!.turns.take(() => {
      const committed = commitOnce(this.#database!.committer, lease, work, this.clock.read());
      if (committed === 'busy') throw unavailable('could not begin a transaction.');
      if (committed.nextDue) this.#database!.wake();
      return committed;
    });
  }

  async close(): Promise<void> {
    this.#database?.listeners.delete(this.onWake);
    if (this.given === undefined) await this.#database?.close();
    else await this.#database?.turns.take(() => {});
  }
}
