import { types } from 'node:util';
import { PaymentsError } from '../../payments.errors.js';
import type { Lease } from '../inbox-store.js';
import { isBusy, primaryCode } from './sqlite.connection.js';
import type { SqliteConnection } from './sqlite.connection.js';
import { toError, toFailure } from './sqlite.failure.js';
import { complete } from './sqlite.settle.js';
import { lendTransaction } from './sqlite.transaction.js';
import type { SqliteTransaction } from './sqlite.transaction.js';

/** What came of an attempt to commit. `busy`: another connection holds the lock, nothing was done. */
export type CommitOutcome<R> =
  { readonly busy: true } | { readonly busy: false; readonly result: R };

/** SQLite's result code of a broken constraint; a deferred one breaks at the COMMIT. */
const CONSTRAINT = 19;

/**
 * Runs `work` and settles the lease in one transaction, without waiting for a lock or a disk. The settlement
 * comes first: it is the fence, and under the lock it takes nobody can claim the delivery meanwhile.
 *
 * @throws PaymentsError `lease_lost`, `inbox_unavailable`; TypeError where `work` returned a promise or ended
 *   the transaction; and what `work` throws.
 */
export function commitOnce<R>(
  connection: SqliteConnection,
  lease: Lease,
  work: (tx: SqliteTransaction) => R,
  now: number,
): CommitOutcome<R> {
  if (!begin(connection)) return { busy: true };
  try {
    if (!guarded(() => complete(connection, { lease }, now))) throw leaseLost(lease);
    guarded(() => connection.run('SAVEPOINT payments_inbox_work'));
    const result = runWork(connection, work);
    release(connection);
    commit(connection);
    return { busy: false, result };
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
  const { tx, revoke } = lendTransaction(connection.database);
  connection.lent = true;
  try {
    const result: unknown = work(tx);
    if (isPromise(result)) {
      // It runs on without a transaction; what becomes of it is not to end the process.
      Promise.resolve(result).catch(() => {});
      throw new TypeError(
        'The callback of context.commit returned a promise. On SQLite it must be synchronous: do what takes ' +
          'time before, and only write in it. Nothing was committed.',
      );
    }
    return result as R;
  } finally {
    connection.lent = false;
    revoke();
  }
}

/** The savepoint is gone where `work` ended the transaction it was given, even if it began another. */
function release(connection: SqliteConnection): void {
  try {
    connection.run('RELEASE payments_inbox_work');
  } catch (error) {
    if (primaryCode(error) !== 1) throw toError(toFailure(error));
    throw new TypeError(
      'The callback of context.commit ended its transaction. What it wrote until then may have been committed, ' +
        'or rolled back: take the COMMIT or ROLLBACK out of it.',
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
    `The lease of "${handler}" on event "${id}" was lost before its commit: it ran out, or was settled already. ` +
      'Nothing of the commit stays; whoever holds the delivery now settles it.',
  );
}
