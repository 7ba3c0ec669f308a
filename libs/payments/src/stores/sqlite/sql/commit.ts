import { types } from 'node:util';
import { PaymentsError } from '../../../errors/payments-error.js';
import type { CommitResult, Lease } from '../../../inbox/store/inbox-store.js';
import { isBusy, primaryCode, toError, toFailure } from '../thread/connection.js';
import type { SqliteConnection, Times } from '../thread/connection.js';
import { openTransaction } from '../sqlite-transaction.js';
import type { SqliteTransaction } from '../sqlite-transaction.js';
import { SqliteSql } from '../thread/sqlite-sql.js';
import { complete, isCurrent } from './settle.js';

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
  if (!begin(connection)) return 'busy';
  try {
    // No other connection can change the delivery during this transaction, so `work` runs only if it can be settled.
    if (!ownStatement(() => isCurrent(connection, lease))) throw leaseLost(lease);
    ownStatement(() => connection.run('SAVEPOINT payments_inbox_work'));
    const result = runWork(connection, work);
    releaseSavepoint(connection);
    const { settled, nextDue } = ownStatement(() =>
      complete(new SqliteSql(connection, times), lease),
    );
    if (!settled) throw leaseLost(lease);
    commitTransaction(connection);
    return { result, nextDue };
  } catch (error) {
    connection.rollback();
    throw error;
  }
}

function begin(connection: SqliteConnection): boolean {
  try {
    connection.run('BEGIN IMMEDIATE');
    return true;
  } catch (error) {
    if (isBusy(error)) return false;
    throw toError(toFailure(error));
  }
}

function runWork<R>(connection: SqliteConnection, work: (tx: SqliteTransaction) => R): R {
  const { tx, end } = openTransaction(connection.database);
  connection.inUse = true;
  try {
    const result: unknown = work(tx);
    if (isPromise(result)) {
      // The callback continues without a transaction. If its promise rejects later, the process must not exit.
      Promise.resolve(result).catch(() => {});
      throw new TypeError(
        'The callback of context.commit returned a promise. On SQLite it must be synchronous: await everything ' +
          'before context.commit, and only write in the callback. Nothing was committed.',
      );
    }
    return result as R;
  } finally {
    connection.inUse = false;
    end();
  }
}

/** The savepoint no longer exists if `work` ended its transaction, even if `work` began another. */
function releaseSavepoint(connection: SqliteConnection): void {
  try {
    connection.run('RELEASE payments_inbox_work');
  } catch (error) {
    if (primaryCode(error) !== 1) throw toError(toFailure(error));
    throw new TypeError(
      'The callback of context.commit ended its transaction. What it wrote until then may have been committed, ' +
        'or rolled back, without the delivery: take the COMMIT or ROLLBACK out of it.',
      { cause: error },
    );
  }
}

function commitTransaction(connection: SqliteConnection): void {
  try {
    connection.run('COMMIT');
  } catch (error) {
    if (primaryCode(error) === CONSTRAINT) throw error;
    throw toError(toFailure(error));
  }
}

/** Runs a statement of the inbox, whose errors must not look like errors of the application's SQL. */
function ownStatement<T>(act: () => T): T {
  try {
    return act();
  } catch (error) {
    throw toError(toFailure(error));
  }
}

function isPromise(value: unknown): value is PromiseLike<unknown> {
  return (
    types.isPromise(value) || typeof (value as PromiseLike<unknown> | null)?.then === 'function'
  );
}

function leaseLost({ id, handler }: Lease): PaymentsError {
  return new PaymentsError(
    'lease_lost',
    `The lease of "${handler}" on event "${id}" was lost before its commit: its worker was declared dead, or the ` +
      'delivery was settled already. Nothing of the commit was stored; the worker that has the lease now settles it.',
  );
}
