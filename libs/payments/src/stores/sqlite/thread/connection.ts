import { PaymentsError } from '../../../errors/payments-error.js';
import type { PaymentsErrorCode } from '../../../errors/payments-error-code.js';
import type {
  CatalogChange,
  SqlDatabase,
  SqlDialect,
  SqlValue,
  StoreLayout,
} from '../../sql/sql-connection.js';

/** A value in SQLite. A number with a fraction is REAL. A number without a fraction and a `bigint` are INTEGER. */
export type SqliteValue = null | number | bigint | string | Uint8Array;

/** A row: the value of each column, by column name. */
export type SqliteRow = Record<string, SqliteValue>;

/** The part of `node:sqlite`'s `StatementSync` that the inbox uses. */
export interface DriverStatement {
  run(...parameters: unknown[]): {
    readonly changes: number | bigint;
    readonly lastInsertRowid: number | bigint;
  };
  get(...parameters: unknown[]): unknown;
  all(...parameters: unknown[]): unknown[];
  setReadBigInts(enabled: boolean): void;
}

/** The part of `node:sqlite`'s database class that the inbox uses. */
export interface DriverDatabase {
  exec(sql: string): void;
  prepare(sql: string): DriverStatement;
  close(): void;
  /** Sets the function that allows or denies statements. Node has this method since version 24.10. */
  setAuthorizer?(
    authorizer: (action: number, first: string | null, second: string | null) => number,
  ): void;
}

export type Driver = new (file: string) => DriverDatabase;

/**
 * Loads `node:sqlite` when the store opens, not before, because its import prints an ExperimentalWarning, which
 * applications with another inbox should not see.
 */
export async function loadDriver(): Promise<Driver> {
  return (await import('node:sqlite')).DatabaseSync;
}

/** The time of an operation in whole milliseconds, by the clocks of the process that requested it. */
export interface Times {
  /** The wall clock, for receipts, history and retention. The wall clock may jump. */
  readonly wall: number;
  /**
   * The store clock, for due times. The store clock continues after a restart, and all processes of one file use the
   * same clock.
   */
  readonly clock: number;
  /** The process clock (`PaymentsRuntime.monotonic()`) minus {@link machineMs}, for intervals within this process. */
  readonly processOffset: number;
}

/** Returns the machine's monotonic clock in milliseconds, which is the same in all threads. */
export function machineMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

/** The store clock in the file, and the wall clock when it was stored; zeros in a new file. */
export type StoredClock = Pick<Times, 'wall' | 'clock'>;

/** A database connection that prepares each statement once. */
export class SqliteConnection {
  /** Whether the callback of a `context.commit` uses the connection now. */
  inUse = false;
  /**
   * The prepared statements. `indexes` has the index of the parameter for each placeholder, or is `null` if the
   * placeholders take the parameters in order.
   */
  readonly #statements = new Map<
    string,
    { readonly statement: DriverStatement; readonly indexes: readonly number[] | null }
  >();
  #cache: Map<string, unknown> | null = null;

  constructor(
    readonly database: DriverDatabase,
    /** Returns the time of the clock that {@link Times.processOffset} refers to. */
    readonly machine: () => number = machineMs,
  ) {}

  /** Runs one or several statements without parameters, and does not keep them prepared. */
  exec(sql: string): void {
    this.database.exec(sql);
  }

  /** Runs a statement; returns how many rows it changed. */
  run(sql: string, parameters: readonly unknown[] = []): number {
    const { statement, values } = this.#bound(sql, parameters);
    return Number(statement.run(...values).changes);
  }

  /**
   * Runs an `INSERT` of one row. Returns the row's number, or `null` if a conflict prevented the insert. The method is
   * faster than `RETURNING`, for which SQLite creates a temporary table.
   */
  insert(sql: string, parameters: readonly unknown[] = []): number | null {
    const { statement, values } = this.#bound(sql, parameters);
    const { changes, lastInsertRowid } = statement.run(...values);
    return Number(changes) === 0 ? null : Number(lastInsertRowid);
  }

  // oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- the SQL defines the columns of a row
  get<Row = SqliteRow>(sql: string, parameters: readonly unknown[] = []): Row | undefined {
    const { statement, values } = this.#bound(sql, parameters);
    return statement.get(...values) as Row | undefined;
  }

  all<Row = SqliteRow>(sql: string, parameters: readonly unknown[] = []): Row[] {
    const { statement, values } = this.#bound(sql, parameters);
    return statement.all(...values) as Row[];
  }

  /** Rolls back the transaction if it is still open, because SQLite itself rolls back after some errors. */
  rollback(): void {
    try {
      this.run('ROLLBACK');
    } catch {
      // No transaction is open.
    }
  }

  /** Returns the result of `read`; while the cache is on, `read` is called once for each `name`. */
  cached<T>(name: string, read: () => T): T {
    if (this.#cache === null) return read();
    if (!this.#cache.has(name)) this.#cache.set(name, read());
    return this.#cache.get(name) as T;
  }

  uncache(name: string): void {
    this.#cache?.delete(name);
  }

  /** Empties the cache of {@link cached}, and turns it on or off. */
  resetCache(on: boolean): void {
    this.#cache = on ? new Map() : null;
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
      // Older releases of Node 22 treat `?1` as a named parameter and bind no value to it.
      const indexes = [...sql.matchAll(NUMBERED)].map(([, number]) => Number(number) - 1);
      const statement = this.database.prepare(sql.replace(CAST, '').replace(NUMBERED, '?'));
      prepared = { statement, indexes: indexes.length > 0 ? indexes : null };
      this.#statements.set(sql, prepared);
    }
    const { statement, indexes } = prepared;
    return { statement, values: indexes?.map((index) => parameters[index]) ?? parameters };
  }
}

const NUMBERED = /[?$](\d+)/g;
/** A cast of PostgreSQL, in a statement that both databases run. */
const CAST = /::\w+(?:\[\])?/g;

/** Runs the statements of `stores/sql/` for one operation, at the time of the process that requested it. */
export class SqliteSql implements SqlDatabase {
  /** Whether a delivery or a poll may have become due. The operation sets this field. */
  wakes = false;
  #dialect: SqlDialect | undefined;

  constructor(
    readonly connection: SqliteConnection,
    readonly times: Times,
  ) {}

  get dialect(): SqlDialect {
    return (this.#dialect ??= dialectAt(this.times));
  }

  async all<Row>(sql: string, parameters: readonly SqlValue[] = []): Promise<Row[]> {
    return this.connection.all<Row>(sql, toBound(sql, parameters, this.times));
  }

  async get<Row>(sql: string, parameters: readonly SqlValue[] = []): Promise<Row | undefined> {
    return this.connection.get<Row>(sql, toBound(sql, parameters, this.times));
  }

  async run(sql: string, parameters: readonly SqlValue[] = []): Promise<number> {
    return this.connection.run(sql, toBound(sql, parameters, this.times));
  }

  /** Begins no transaction: a write runs in a transaction already, and a read needs none. */
  transaction<T>(work: (sql: SqliteSql) => Promise<T>): Promise<T> {
    return work(this);
  }

  async changeCatalog(change: CatalogChange, values: readonly SqlValue[]): Promise<void> {
    for (const sql of change.statements(this.dialect)) await this.run(sql, values);
  }
}

const LAYOUT: StoreLayout = {
  bodies: `(SELECT e.*, b.raw, b.headers FROM payments_inbox_event e
    LEFT JOIN payments_inbox_body b ON b.event = e.seq)`,
  pruned: 'e.pruned',
  tombstone: 'pruned = 1',
  bodyTables: ['body'],
  queues: (['waiting', 'due', 'suspect', 'dead'] as const).map((queue) => ({
    state: queue === 'dead' ? 'dead' : 'pending',
    index: 'queue',
    condition: `d.queue = '${queue}'`,
    indexed: 'd.queue IS NOT NULL',
  })),
};

export function dialectAt({ wall, clock }: Times): SqlDialect {
  return {
    table: (name) => `payments_inbox_${name}`,
    now: (which) => `$${which === 'wall' ? WALL : CLOCK}`,
    isOneOf: (column, parameter) => `${column} IN (SELECT value FROM json_each(${parameter}))`,
    hex: (column) => `lower(hex(${column}))`,
    index: (name) => `INDEXED BY payments_inbox_${name}`,
    indexed: (text) => text,
    elements: (array, alias = 'j') => `json_each(${array}) AS ${alias}`,
    jsonArray: (value) => `json_group_array(${value}) FILTER (WHERE ${value} IS NOT NULL)`,
    skipLocked: () => '',
    commits: () => 'true',
    wallOffsetMs: wall - clock,
    layout: LAYOUT,
  };
}

/** Waits until the thread has run the messages that have arrived. */
export function pause(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/**
 * The numbers of the parameters for the times in a statement of `stores/sql/`. The other parameters of the statement
 * have lower numbers.
 */
const [WALL, CLOCK] = [98, 99];

/** Returns the parameters of a statement of `stores/sql/`. */
export function toBound(sql: string, parameters: readonly SqlValue[], times: Times): unknown[] {
  // If a statement has no placeholder, the driver accepts no parameters.
  if (!sql.includes('$')) return [];
  const values: unknown[] = parameters.map((value) => {
    if (typeof value === 'boolean') return value ? 1 : 0;
    if (typeof value !== 'object' || value === null || value instanceof Uint8Array) return value;
    return JSON.stringify(value);
  });
  values[WALL - 1] = times.wall;
  values[CLOCK - 1] = times.clock;
  return values;
}

const sleeper = new Int32Array(new SharedArrayBuffer(4));

/**
 * Calls `act`, and repeats the call while another connection holds the lock. After `ms` milliseconds, throws the last
 * error. The function tries every few milliseconds. SQLite's own wait sleeps up to 100 ms between two tries, and
 * therefore rarely finds the short time between two transactions of a busy process.
 */
export function retryWhileBusy<T>(ms: number, act: () => T): T {
  const end = performance.now() + ms;
  for (;;) {
    try {
      return act();
    } catch (error) {
      if (!waitForLock(error, end)) throw error;
    }
  }
}

/**
 * If another connection holds the lock, blocks the thread for a few milliseconds and returns `true`. After any other
 * error, or after `end`, returns `false` at once.
 */
export function waitForLock(error: unknown, end: number): boolean {
  if (!isBusy(error) || performance.now() > end) return false;
  Atomics.wait(sleeper, 0, 0, 1 + Math.random() * 3);
  return true;
}

/** An error of the thread, in the form in which the thread sends it to the main thread. */
export interface ThreadFailure {
  /** `null` for a `TypeError`, which is a mistake of the caller. */
  readonly code: PaymentsErrorCode | null;
  readonly message: string;
}

/** The fix for each of SQLite's primary result codes (https://www.sqlite.org/rescode.html). */
const FIXES: Readonly<Record<number, string>> = {
  5: 'Another connection locked the file for longer than "busyTimeoutMs": look for a long transaction.',
  8: 'The process must be allowed to write to the file and its folder.',
  10: "The file's disk reported an error: read the log of the system.",
  11: 'The file is damaged: restore it from a backup.',
  13: 'Free some space on its disk.',
  14: 'Its folder must exist, and the process must be allowed to write in it.',
  26: 'The file is not a SQLite database: set "file" to another path.',
};

/** SQLite's primary result code (https://www.sqlite.org/rescode.html); `undefined` for other errors. */
export function primaryCode(error: unknown): number | undefined {
  const code = (error as { errcode?: unknown } | null)?.errcode;
  return typeof code === 'number' ? code & 0xff : undefined;
}

/** Whether a statement failed because another connection holds a lock. */
export function isBusy(error: unknown): boolean {
  return primaryCode(error) === 5;
}

/** The result contains no stored data, because SQLite's messages contain names of tables but never values. */
export function toFailure(error: unknown): ThreadFailure {
  if (error instanceof PaymentsError) return { code: error.code, message: error.message };
  if (error instanceof TypeError) return { code: null, message: error.message };
  const message = (error instanceof Error ? error.message : String(error)).replace(/\.$/, '');
  const fix = FIXES[primaryCode(error) ?? 0];
  return {
    code: 'inbox_unavailable',
    message: `The SQLite inbox failed: ${message}.${fix === undefined ? '' : ` ${fix}`}`,
  };
}

export function toError({ code, message }: ThreadFailure): Error {
  return code === null ? new TypeError(message) : new PaymentsError(code, message);
}

export function unavailable(message: string): PaymentsError {
  return new PaymentsError('inbox_unavailable', `The SQLite inbox ${message}`);
}
