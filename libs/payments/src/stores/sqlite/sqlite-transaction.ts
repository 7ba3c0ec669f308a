import { primaryCode } from './thread/connection.js';
import type { DriverDatabase, SqliteRow, SqliteValue } from './thread/connection.js';

/** A parameter by position, or an object with all named parameters. */
export type SqliteParameter = SqliteValue | Readonly<Record<string, SqliteValue>>;

/** A prepared statement of a {@link SqliteTransaction}. It throws after the end of the transaction. */
export interface SqliteStatement {
  /** Runs the statement without returning rows. */
  run(...parameters: readonly SqliteParameter[]): {
    readonly changes: number | bigint;
    readonly lastInsertRowid: number | bigint;
  };
  /** The first row, if there is one. */
  get(...parameters: readonly SqliteParameter[]): SqliteRow | undefined;
  /** All rows. */
  all(...parameters: readonly SqliteParameter[]): SqliteRow[];
}

/**
 * The transaction of a `context.commit`, on the database file of the inbox. It ends when the callback returns. The
 * callback is synchronous, because SQLite has one writer and all others wait for it.
 *
 * @example
 * ```ts
 * await context.commit((tx) => {
 *   tx.prepare('INSERT INTO ledger (transaction_id, amount) VALUES (?, ?)').run(id, amount);
 * });
 * ```
 */
export interface SqliteTransaction {
  /** The callback must not return a promise: the compiler rejects an `async` callback. */
  readonly synchronous: true;
  /**
   * Prepares a statement. With `readBigInts`, it returns all integers as `bigint`; without, it throws on an integer
   * beyond 2^53.
   */
  prepare(sql: string, options?: { readonly readBigInts?: boolean }): SqliteStatement;
  /** Runs one statement or several, without parameters. */
  exec(sql: string): void;
}

/** Parts of a script that contain no keywords: strings, quoted names, comments. */
const QUOTED = /'(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`|\[[^\]]*\]|--[^\n]*|\/\*[^]*?(?:\*\/|$)/g;
// This does not match ROLLBACK TO a savepoint, which stays within the transaction.
const CONTROL = /(?:^|;)\s*(?:BEGIN|COMMIT|END|ROLLBACK(?!\s+(?:TRANSACTION\s+)?TO\b))\b/i;

/**
 * Whether a script begins or ends a transaction. A script with a trigger is allowed: its body has a BEGIN and an END.
 */
function isTransactionControl(sql: string): boolean {
  const bare = sql.replace(QUOTED, ' ');
  return CONTROL.test(bare) && !/\bTRIGGER\b/i.test(bare);
}

/** SQLite's result code for a statement that the authorizer denied. */
const DENIED = 23;

/** Creates a {@link SqliteTransaction} on `database`, and a function after which it throws. */
export function openTransaction(database: DriverDatabase): {
  readonly tx: SqliteTransaction;
  readonly end: () => void;
} {
  let over = false;
  const within = <T>(act: () => T): T => {
    if (over) throw isOver();
    return act();
  };
  /** Calls `act`, which compiles SQL. SQLite calls the authorizer when it compiles. */
  const checked = <T>(sql: string, act: () => T): T => {
    if (over) throw isOver();
    if (isTransactionControl(sql)) throw isControl();
    try {
      return act();
    } catch (error) {
      throw primaryCode(error) === DENIED ? isControl() : error;
    }
  };
  const tx: SqliteTransaction = {
    synchronous: true,
    prepare(sql, options) {
      const statement = checked(sql, () => database.prepare(sql));
      if (options?.readBigInts === true) statement.setReadBigInts(true);
      return {
        run: (...parameters) => within(() => statement.run(...parameters)),
        get: (...parameters) => within(() => statement.get(...parameters) as SqliteRow | undefined),
        all: (...parameters) => within(() => statement.all(...parameters) as SqliteRow[]),
      };
    },
    exec: (sql) => checked(sql, () => database.exec(sql)),
  };
  return {
    tx,
    end: () => {
      over = true;
    },
  };
}

// https://www.sqlite.org/c3ref/c_alter_table.html
const PRAGMA = 19;
const TRANSACTION = 22;
const ATTACH = 24;
const DETACH = 25;

const [OK, DENY] = [0, 1];

/** Pragmas that would make later commits of the connection less safe, block for longer, or fail. */
export const UNSAFE_PRAGMAS: ReadonlySet<string> = new Set([
  'busy_timeout',
  'checkpoint_fullfsync',
  'foreign_keys',
  'fullfsync',
  'ignore_check_constraints',
  'journal_mode',
  'locking_mode',
  'query_only',
  'recursive_triggers',
  'synchronous',
  'wal_autocheckpoint',
  'wal_checkpoint',
  'writable_schema',
]);

/**
 * Makes SQLite reject every statement that would end the transaction or change how the connection works, at any place
 * in a script, while `inUse` returns true. On a Node without `setAuthorizer` it has no effect; there, a statement that
 * ends the transaction makes the release of the commit's savepoint fail.
 */
export function protect(database: DriverDatabase, inUse: () => boolean): void {
  database.setAuthorizer?.((action, first) => {
    if (!inUse()) return OK;
    const denied =
      action === TRANSACTION ||
      action === ATTACH ||
      action === DETACH ||
      (action === PRAGMA && UNSAFE_PRAGMAS.has(String(first).toLowerCase()));
    return denied ? DENY : OK;
  });
}

function isOver(): TypeError {
  return new TypeError(
    'The transaction of this context.commit is over. Its callback must do all of its work before it ' +
      'returns, without awaiting anything.',
  );
}

function isControl(): TypeError {
  return new TypeError(
    'The work of a context.commit must not begin or end a transaction, attach a database or change how the ' +
      'connection keeps data safe: the inbox commits the transaction together with the delivery. ' +
      'To roll back, throw an error.',
  );
}
