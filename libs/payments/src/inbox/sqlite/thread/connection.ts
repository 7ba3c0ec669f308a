import { protect } from '../commit/transaction.js';
import { primaryCode } from './driver.js';
import type { Driver, DriverDatabase, DriverStatement, SqliteRow } from './driver.js';
import { WorkerLiveness } from './worker-liveness.js';

/** A connection with its statements, each prepared once. */
export class SqliteConnection {
  /** Whether the application uses it, for the work of a commit. */
  inUse = false;
  /** What this process has seen of the workers. */
  readonly liveness = new WorkerLiveness();
  readonly #statements = new Map<string, Prepared>();
  #facts: Map<string, unknown> | null = null;

  constructor(readonly database: DriverDatabase) {}

  /** Runs statements that are not to be kept. */
  exec(sql: string): void {
    this.database.exec(sql);
  }

  /** Runs a statement; returns how many rows it changed. */
  run(sql: string, parameters: readonly unknown[] = []): number {
    const { statement, values } = this.#bound(sql, parameters);
    return Number(statement.run(...values).changes);
  }

  /**
   * Runs an `INSERT` of a row; returns its number, or `null` if it was not inserted because of a conflict. For
   * `RETURNING`, SQLite would make a table of its own.
   */
  insert(sql: string, parameters: readonly unknown[] = []): number | null {
    const { statement, values } = this.#bound(sql, parameters);
    const { changes, lastInsertRowid } = statement.run(...values);
    return Number(changes) === 0 ? null : Number(lastInsertRowid);
  }

  /** The first row. */
  // oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- the SQL defines what a row has
  get<Row = SqliteRow>(sql: string, parameters: readonly unknown[] = []): Row | undefined {
    const { statement, values } = this.#bound(sql, parameters);
    return statement.get(...values) as Row | undefined;
  }

  all<Row = SqliteRow>(sql: string, parameters: readonly unknown[] = []): Row[] {
    const { statement, values } = this.#bound(sql, parameters);
    return statement.all(...values) as Row[];
  }

  /** Rolls back, if a transaction is open: SQLite itself rolls back after some errors. */
  rollback(): void {
    try {
      this.run('ROLLBACK');
    } catch {
      // No transaction is active.
    }
  }

  /** What `read` returns; within a transaction of several operations, it is read once. */
  fact<T>(name: string, read: () => T): T {
    if (this.#facts === null) return read();
    if (!this.#facts.has(name)) this.#facts.set(name, read());
    return this.#facts.get(name) as T;
  }

  /** Forgets all facts. Keeps those that are read from now on, until the next call. */
  keepFacts(keep: boolean): void {
    this.#facts = keep ? new Map() : null;
  }

  close(): void {
    this.#statements.clear();
    this.database.close();
  }

  #bound(
    sql: string,
    parameters: readonly unknown[],
  ): { statement: DriverStatement; values: readonly unknown[] } {
    let prepared = this.#statements.get(sql);
    if (prepared === undefined) {
      prepared = prepare(this.database, sql);
      this.#statements.set(sql, prepared);
    }
    const { statement, places } = prepared;
    return { statement, values: places?.map((place) => parameters[place]) ?? parameters };
  }
}

/** A statement, and which parameter each of its placeholders takes; `null` if they take one each, in order. */
interface Prepared {
  readonly statement: DriverStatement;
  readonly places: readonly number[] | null;
}

const NUMBERED = /\?(\d+)/g;

/** Older releases of Node 22 take a numbered parameter (`?1`) for a named one, and bind no value to it. */
function prepare(database: DriverDatabase, sql: string): Prepared {
  const places = [...sql.matchAll(NUMBERED)].map(([, number]) => Number(number) - 1);
  return {
    statement: database.prepare(sql.replace(NUMBERED, '?')),
    places: places.length > 0 ? places : null,
  };
}

/** How long SQLite itself waits for a lock, in milliseconds, before {@link retryWhileBusy} takes over. */
const BUSY_SLICE_MS = 10;

/**
 * The connection of the thread: every commit is on the disk when it returns.
 * It blocks while it waits for a lock, so it is not for the event loop that serves requests.
 */
export function openWriter(driver: Driver, file: string, busyTimeoutMs: number): SqliteConnection {
  const connection = new SqliteConnection(new driver(file));
  try {
    connection.exec(`PRAGMA busy_timeout = ${BUSY_SLICE_MS}`);
    // The switch to WAL needs the file for itself, and does not wait for it.
    retryWhileBusy(busyTimeoutMs, () => {
      const mode = connection.get<{ journal_mode: string }>('PRAGMA journal_mode = WAL');
      if (mode?.journal_mode === 'wal') return;
      throw new Error(
        `the file cannot be used with a write-ahead log (it stays in mode ${mode?.journal_mode})`,
      );
    });
    // fullfsync is for macOS only, where a plain fsync does not reach the disk. 64 MB of cache: ids have no order, so
    // inserts read pages all over the index of ids.
    connection.exec(
      'PRAGMA synchronous = FULL; PRAGMA fullfsync = ON; PRAGMA checkpoint_fullfsync = ON;' +
        'PRAGMA foreign_keys = ON; PRAGMA cache_size = -64000',
    );
    return connection;
  } catch (error) {
    connection.close();
    throw error;
  }
}

/**
 * The connection of the event loop, for `commit`. It never waits for a lock, never checkpoints, and its
 * commits append to the write-ahead log without an fsync: the thread's `sync` makes them durable.
 * `NORMAL`, not `OFF`: with `OFF` SQLite would not sync the header of a log that it restarts, and a power cut
 * could corrupt the file.
 */
export function openCommitter(driver: Driver, file: string): SqliteConnection {
  const connection = new SqliteConnection(new driver(file));
  try {
    connection.exec(
      'PRAGMA busy_timeout = 0; PRAGMA synchronous = NORMAL; PRAGMA fullfsync = ON;' +
        'PRAGMA wal_autocheckpoint = 0; PRAGMA foreign_keys = ON',
    );
    protect(connection.database, () => connection.inUse);
    return connection;
  } catch (error) {
    connection.close();
    throw error;
  }
}

/** Whether another connection holds the lock that was needed. */
export function isBusy(error: unknown): boolean {
  return primaryCode(error) === 5;
}

const sleeper = new Int32Array(new SharedArrayBuffer(4));

/** Blocks this thread. */
export function sleep(ms: number): void {
  Atomics.wait(sleeper, 0, 0, ms);
}

/**
 * Calls `act` until no lock prevents it, for at most `ms` milliseconds; then throws what it threw.
 * SQLite's own waiting sleeps up to 100 ms between its tries, so it seldom finds the lock of a busy process
 * free; a try every few milliseconds finds the gap between two transactions of that process.
 */
export function retryWhileBusy<T>(ms: number, act: () => T): T {
  const end = performance.now() + ms;
  for (;;) {
    try {
      return act();
    } catch (error) {
      if (!isBusy(error) || performance.now() > end) throw error;
      sleep(1 + Math.random() * 3);
    }
  }
}
