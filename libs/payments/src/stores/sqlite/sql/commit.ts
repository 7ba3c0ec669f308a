import { types } from 'node:util';
import { PaymentsError } from '../../../errors/payments-error.js';
import type { CommitResult, Lease } from '../../../inbox/store/inbox-store.js';
import { isBusy, primaryCode, toError, toFailure, unavailable } from '../thread/connection.js';
import type { SqliteConnection, Times } from '../thread/connection.js';
import { openTransaction } from '../sqlite-transaction.js';
import type { SqliteTransaction } from '../sqlite-transaction.js';
import type { SqliteClient } from '../thread/client.js';
import { complete, isCurrent } from './settle.js';

/** How many milliseconds the event loop runs commits before it does other work. */
const TURN_MS = 10;

/** A commit that waits for its turn. */
interface WaitingCommit {
  /** Tries the commit; returns `false` if another connection has the lock. */
  readonly attempt: () => boolean;
  readonly reject: (error: unknown) => void;
  /** By `performance.now()`: real time, because the commit waits for a lock. */
  readonly deadline: number;
}

/**
 * Commits on the event loop, where the callbacks of `context.commit` run. Before it commits, it requests a window from
 * the thread, so that event loop and thread never wait for each other's lock. The thread makes the commits durable,
 * together with its own.
 */
export class SqliteCommitter {
  #waiting: WaitingCommit[] = [];
  #underWay = 0;
  #turning = false;
  #onIdle: (() => void) | undefined;

  constructor(
    private readonly client: SqliteClient,
    private readonly connect: () => SqliteConnection,
    private readonly busyTimeoutMs: number,
    private readonly times: () => Times,
  ) {}

  /** Resolves when the effects of `work` and the outcome of the attempt are on the disk. */
  async commit<R>(lease: Lease, work: (tx: SqliteTransaction) => R): Promise<CommitResult<R>> {
    this.#underWay += 1;
    try {
      const result = await this.#committed(lease, work);
      await this.#makeDurable();
      return result;
    } finally {
      this.#underWay -= 1;
      if (this.#underWay === 0) this.#onIdle?.();
    }
  }

  /** Resolves when no commit is under way. */
  idle(): Promise<void> {
    if (this.#underWay === 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.#onIdle = resolve;
    });
  }

  #committed<R>(lease: Lease, work: (tx: SqliteTransaction) => R): Promise<CommitResult<R>> {
    return new Promise((resolve, reject) => {
      const attempt = () => {
        const outcome = commitOnce(this.connect(), lease, work, this.times());
        if (outcome !== 'busy') resolve(outcome);
        return outcome !== 'busy';
      };
      this.#waiting.push({ attempt, reject, deadline: performance.now() + this.busyTimeoutMs });
      void this.#takeTurns();
    });
  }

  async #makeDurable(): Promise<void> {
    const { unexpectedEnds } = this.client;
    try {
      try {
        await this.client.call('sync');
      } catch (error) {
        // Tries again only if the thread ended. After an error of the disk, a second fsync guarantees nothing.
        if (this.client.unexpectedEnds === unexpectedEnds) throw error;
        await this.client.call('sync');
      }
    } catch (error) {
      throw unavailable(
        'committed the effects together with the delivery, but a power loss might still undo both: ' +
          (error as Error).message,
      );
    }
  }

  async #takeTurns(): Promise<void> {
    if (this.#turning) return;
    this.#turning = true;
    while (this.#waiting.length > 0) {
      try {
        await this.client.openWindow();
      } catch (error) {
        for (const { reject } of this.#waiting.splice(0)) reject(error);
        break;
      }
      const locked = this.#turn();
      this.client.closeWindow();
      if (locked) await pauseMs(1 + Math.random() * 4);
    }
    this.#turning = false;
  }

  /** Runs waiting commits in order, for {@link TURN_MS}; returns whether another process has the lock. */
  #turn(): boolean {
    const end = performance.now() + TURN_MS;
    while (this.#waiting.length > 0 && performance.now() < end) {
      const { attempt, reject, deadline } = this.#waiting[0]!;
      try {
        if (!attempt()) {
          if (performance.now() < deadline) return true;
          throw unavailable(
            `could not commit: another connection locked the file for ${this.busyTimeoutMs} ms. ` +
              'Look for a long transaction.',
          );
        }
      } catch (error) {
        reject(error);
      }
      this.#waiting.shift();
    }
    return false;
  }
}

function pauseMs(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
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
  if (!begin(connection)) return 'busy';
  try {
    // No other connection can change the delivery during this transaction, so `work` runs only if it can be settled.
    if (!ownStatement(() => isCurrent(connection, lease))) throw leaseLost(lease);
    ownStatement(() => connection.run('SAVEPOINT payments_inbox_work'));
    const result = runWork(connection, work);
    releaseSavepoint(connection);
    const { settled, nextDue } = ownStatement(() => complete(connection, { lease }, times));
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
