import { types } from 'node:util';
import type { CommitResult, Lease } from '../../../inbox/store/inbox-store.js';
import { isBusy, primaryCode, toError, toFailure } from '../thread/connection.js';
import type {
  DriverDatabase,
  SqliteConnection,
  SqliteRow,
  SqliteValue,
  Times,
} from '../thread/connection.js';
import { SqliteSql } from '../thread/connection.js';
import { leaseLost } from '../../sql/workers.js';
import { complete, findRunning } from './settle.js';

/** A parameter by position, or an object with all named parameters. */
export type SqliteParameter = SqliteValue | Readonly<Record<string, SqliteValue>>;

/** A prepared statement of a {@link SqliteTransaction}. The statement throws after the end of the transaction. */
export interface SqliteStatement {
  /** Runs the statement without returning rows. */
  run(...parameters: readonly SqliteParameter[]): {
    readonly changes: number | bigint;
    readonly lastInsertRowid: number | bigint;
  };
  /** Returns the first row; `undefined` if there is no row. */
  get(...parameters: readonly SqliteParameter[]): SqliteRow | undefined;
  /** Returns all rows. */
  all(...parameters: readonly SqliteParameter[]): SqliteRow[];
}

/**
 * The transaction of a `context.commit`, on the database file of the inbox. The transaction ends when the callback
 * returns. The callback is synchronous, because SQLite has one writer at a time and all other writers wait for it.
 *
 * @example
 * ```ts
 * await context.commit((tx) => {
 *   tx.prepare('INSERT INTO ledger (transaction_id, amount) VALUES (?, ?)').run(id, amount);
 * });
 * ```
 */
export interface SqliteTransaction {
  /** Makes the compiler reject an `async` callback, because the callback must not return a promise. */
  readonly synchronous: true;
  /**
   * Prepares a statement. With `readBigInts`, the statement returns all integers as `bigint`. Without `readBigInts`,
   * the statement throws on an integer beyond 2^53.
   */
  prepare(sql: string, options?: { readonly readBigInts?: boolean }): SqliteStatement;
  /** Runs one statement or several, without parameters. */
  exec(sql: string): void;
}

/** SQLite's result code of a violated constraint; SQLite reports a deferred constraint at the COMMIT. */
const CONSTRAINT = 19;

/**
 * Runs `work` and settles the lease in one transaction, without waiting for a lock or a disk. Returns `busy`, without
 * any effect, if another connection has the lock.
 *
 * @throws PaymentsError `lease_lost`, `inbox_unavailable`; TypeError if `work` returned a promise or ended the
 *   transaction; and the errors of `work`.
 */
export function commitOnce<R>(
  connection: SqliteConnection,
  lease: Lease,
  work: (tx: SqliteTransaction) => R,
  times: Times,
): CommitResult<R> | 'busy' {
  try {
    connection.run('BEGIN IMMEDIATE');
  } catch (error) {
    if (isBusy(error)) return 'busy';
    throw toError(toFailure(error));
  }
  try {
    // No other connection can change the delivery during this transaction, so `work` runs only if the delivery can be
    // settled.
    const running = ownStatement(() => findRunning(connection, lease));
    if (running === undefined) throw leaseLost(lease);
    ownStatement(() => connection.run('SAVEPOINT payments_inbox_work'));
    const result = runWork(connection, work);
    releaseSavepoint(connection);
    const { settled, nextDue } = ownStatement(() =>
      complete(new SqliteSql(connection, times), lease),
    );
    if (!settled) throw leaseLost(lease);
    ownStatement(() => connection.run('COMMIT'), CONSTRAINT);
    return { result, nextDue };
  } catch (error) {
    connection.rollback();
    throw error;
  }
}

function runWork<R>(connection: SqliteConnection, work: (tx: SqliteTransaction) => R): R {
  let isOver = false;
  connection.inUse = true;
  try {
    const result: unknown = work(transactionOn(connection.database, () => isOver));
    const isPromise =
      types.isPromise(result) ||
      typeof (result as PromiseLike<unknown> | null)?.then === 'function';
    if (isPromise) {
      // The rest of the callback runs without a transaction. If the promise of the callback rejects later, the process
      // must not exit.
      Promise.resolve(result).catch(() => {});
      throw new TypeError(
        'The callback of context.commit returned a promise. On SQLite it must be synchronous: await everything ' +
          'before context.commit, and only write in the callback. Nothing was committed.',
      );
    }
    return result as R;
  } finally {
    connection.inUse = false;
    isOver = true;
  }
}

/**
 * Releases the savepoint of `work`. The savepoint no longer exists if `work` ended its transaction, even if `work`
 * began another transaction.
 */
function releaseSavepoint(connection: SqliteConnection): void {
  try {
    connection.run('RELEASE payments_inbox_work');
  } catch (error) {
    if (primaryCode(error) !== 1) throw toError(toFailure(error));
    throw new TypeError(
      'The callback of context.commit ended its transaction, so its earlier writes may have been committed or rolled ' +
        'back without the delivery. Remove the COMMIT or ROLLBACK from the callback.',
      { cause: error },
    );
  }
}

/**
 * Runs a statement of the inbox, whose errors must not look like errors of the application's SQL. An error with the
 * code `except` is thrown unchanged.
 */
function ownStatement<T>(act: () => T, except?: number): T {
  try {
    return act();
  } catch (error) {
    if (except !== undefined && primaryCode(error) === except) throw error;
    throw toError(toFailure(error));
  }
}

/** The parts of a script that contain no keywords: strings, quoted names and comments. */
const QUOTED = /'(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`|\[[^\]]*\]|--[^\n]*|\/\*[^]*?(?:\*\/|$)/g;
// The pattern does not match ROLLBACK TO a savepoint, which stays within the transaction.
const CONTROL = /(?:^|;)\s*(?:BEGIN|COMMIT|END|ROLLBACK(?!\s+(?:TRANSACTION\s+)?TO\b))\b/i;

/**
 * Whether a script begins or ends a transaction. Returns `false` for a script with the word TRIGGER, because the BEGIN and
 * the END in the body of a trigger do not begin or end a transaction.
 */
function isTransactionControl(sql: string): boolean {
  const bare = sql.replace(QUOTED, ' ');
  return CONTROL.test(bare) && !/\bTRIGGER\b/i.test(bare);
}

/** SQLite's result code for a statement that the authorizer denied. */
const DENIED = 23;

/** Returns the transaction for the callback. Its methods throw after the end of the transaction. */
function transactionOn(database: DriverDatabase, isOver: () => boolean): SqliteTransaction {
  const within = <T>(act: () => T): T => {
    if (!isOver()) return act();
    throw new TypeError(
      'The transaction of this context.commit is over. Its callback must do all of its work before it ' +
        'returns, without awaiting anything.',
    );
  };
  /** Calls `act`, which compiles SQL. SQLite calls the authorizer when it compiles. */
  const checked = <T>(sql: string, act: () => T): T =>
    within(() => {
      if (isTransactionControl(sql)) throw isControl();
      try {
        return act();
      } catch (error) {
        throw primaryCode(error) === DENIED ? isControl() : error;
      }
    });
  return {
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
}

// https://www.sqlite.org/c3ref/c_alter_table.html
const PRAGMA = 19;
const TRANSACTION = 22;
const ATTACH = 24;
const DETACH = 25;

const [OK, DENY] = [0, 1];

/** Pragmas after which later commits of the connection would be less safe, block for longer, or fail. */
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
 * Makes SQLite reject every statement that would end the transaction or change how the connection works, while `inUse`
 * returns true. SQLite rejects these statements at any place in a script. On a version of Node without `setAuthorizer`,
 * this function has no effect. On such a version, if a statement ends the transaction, the release of the commit's
 * savepoint fails.
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

function isControl(): TypeError {
  return new TypeError(
    'The callback of context.commit must not begin or end a transaction, attach a database or change the safety ' +
      'settings of the connection, because the inbox commits the transaction together with the delivery. ' +
      'To roll back, throw an error.',
  );
}
