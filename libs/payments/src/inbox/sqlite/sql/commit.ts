import { types } from 'node:util';
import { PaymentsError } from '../../../errors/payments-error.js';
import { openTransaction } from '../commit/transaction.js';
import type { SqliteTransaction } from '../commit/transaction.js';
import type { CommitResult, Lease } from '../../store/inbox-store.js';
import { toError, toFailure } from '../sqlite-failure.js';
import type { Times } from '../store-clock.js';
import { isBusy } from '../thread/connection.js';
import { primaryCode } from '../thread/driver.js';
import type { SqliteConnection } from '../thread/connection.js';
import { complete, isHeld } from './settle.js';

/** SQLite's result code of a broken constraint; a deferred one breaks at the COMMIT. */
const CONSTRAINT = 19;

/**
 * Runs `work` and settles the lease in one transaction, without waiting for a lock or a disk. Returns `busy`, having
 * done nothing, if another connection has the lock.
 *
 * @throws PaymentsError `lease_lost`, `inbox_unavailable`; TypeError if `work` returned a promise or ended the
 *   transaction; and what `work` throws.
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
    if (!guarded(() => isHeld(connection, lease))) throw leaseLost(lease);
    guarded(() => connection.run('SAVEPOINT payments_inbox_work'));
    const result = runWork(connection, work);
    release(connection);
    const { settled, nextDue } = guarded(() => complete(connection, { lease }, times));
    if (!settled) throw leaseLost(lease);
    commit(connection);
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
      // It continues without a transaction; its rejection must not end the process.
      Promise.resolve(result).catch(() => {});
      throw new TypeError(
        'The callback of context.commit returned a promise. On SQLite it must be synchronous: do what takes ' +
          'time before, and only write in it. Nothing was committed.',
      );
    }
    return result as R;
  } finally {
    connection.inUse = false;
    end();
  }
}

/** The savepoint is gone if `work` ended the transaction it was given, even if it began another. */
function release(connection: SqliteConnection): void {
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

function commit(connection: SqliteConnection): void {
  try {
    connection.run('COMMIT');
  } catch (error) {
    if (primaryCode(error) === CONSTRAINT) throw error;
    throw toError(toFailure(error));
  }
}

function guarded<T>(act: () => T): T {
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
      'delivery was settled already. Nothing of the commit was stored; the worker that holds the delivery settles it.',
  );
}
