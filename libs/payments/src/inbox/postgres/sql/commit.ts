import { PaymentsError } from '../../../errors/payments-error.js';
import type { PaymentsRuntime } from '../../../runtime/payments-runtime.js';
import type { Semaphore } from '../../../runtime/semaphore.js';
import type { CommitResult, Lease } from '../../store/inbox-store.js';
import type { ConnectionSource } from '../connection/connection-source.js';
import { rollBack } from '../connection/connection-source.js';
import type { Connection } from '../connection/database-connection.js';
import { isBroken, sqlStateOf, unavailable } from '../connection/database-failure.js';
import type { PostgresTransaction, RunTransaction } from '../transaction-runner.js';
import { DONE_AND_NEXT_DUE, DONE_AND_RELEASE, finishedOf, isDone, leaseValues } from './finish.js';
import { toStored } from './stored-text.js';

/** How long the store asks for the outcome of a COMMIT that was not answered: a restart takes some seconds. */
const OUTCOME_MS = 15_000;
const OUTCOME_PAUSE_MS = 100;
/** A setting that lasts as long as the transaction. If it is gone, the work has ended the transaction. */
const OWN_TRANSACTION = 'nestjs_payments.commit';
const ENDED = -1;

/** `context.commit`: the effects of a handler and the settlement of its delivery in one transaction. */
export class CommitTransaction {
  readonly #finish: string;
  readonly #finishOwn: string;

  constructor(
    private readonly source: ConnectionSource,
    private readonly schema: string,
    private readonly semaphore: Semaphore,
    private readonly runtime: PaymentsRuntime,
  ) {
    const finish = `${schema}.finish($1::text::bigint, $2::text, $3::text::bigint)`;
    this.#finish = `SELECT ${finish} AS finished`;
    this.#finishOwn = `SELECT CASE WHEN current_setting('${OWN_TRANSACTION}', true) = $4::text THEN ${finish}
      ELSE ${ENDED} END AS finished`;
  }

  /** In a transaction of the inbox's pool. */
  async commit<R>(
    lease: Lease,
    work: (tx: PostgresTransaction) => R | Promise<R>,
  ): Promise<CommitResult<R>> {
    const leave = await this.semaphore.acquire();
    let ended: { result: R; finished: number };
    try {
      const connection = await this.source.connect();
      try {
        ended = await this.#work(connection, lease, work);
        await this.#commit(connection, lease);
      } finally {
        connection.release();
      }
    } finally {
      leave();
    }
    return this.#committed(lease, ended);
  }

  /** In a transaction of the application's ORM or query builder. */
  async commitWith<R>(
    lease: Lease,
    runTransaction: RunTransaction,
    work: (tx: unknown) => R | Promise<R>,
  ): Promise<CommitResult<R>> {
    let outcome: { result: R; finished: number } | { thrown: unknown } | null = null;
    let runnerFailure: { thrown: unknown } | null = null;
    try {
      await runTransaction<R>(async (open) => {
        outcome = null;
        try {
          const result = await work(open.tx);
          const answer = open.query(this.#finish, leaseValues(lease)).catch((error: unknown) => {
            throw isAborted(error) ? rolledBack() : error;
          });
          const finished = finishedOf(await answer);
          if (!isDone(finished)) throw leaseLost(lease);
          outcome = { result, finished };
          return result;
        } catch (thrown) {
          outcome = { thrown };
          throw thrown;
        }
      });
    } catch (thrown) {
      runnerFailure = { thrown };
    }
    // The compiler does not know that the callback has written it.
    const ended = outcome as { result: R; finished: number } | { thrown: unknown } | null;
    if (ended === null) {
      throw runnerFailure?.thrown ?? new TypeError('"runTransaction" has not called its work.');
    }
    if ('thrown' in ended) throw ended.thrown;
    // A runner that resolved may have rolled back: a COMMIT after a failed statement does so without an error. One that
    // rejected may have committed: the connection was cut before the answer.
    if (await this.#wasCommitted(lease)) return this.#committed(lease, ended);
    throw runnerFailure?.thrown ?? rolledBack();
  }

  async #work<R>(
    connection: Connection,
    lease: Lease,
    work: (tx: PostgresTransaction) => R | Promise<R>,
  ): Promise<{ result: R; finished: number }> {
    try {
      // One round trip, and no query: the work may still choose the isolation level.
      const mark = `${lease.seq}-${lease.token}`;
      await this.#run(connection, `BEGIN; SET LOCAL ${OWN_TRANSACTION} = '${mark}'`);
      const result = await work(connection.client);
      const values = [...leaseValues(lease), mark];
      const finished = finishedOf(await this.#run(connection, this.#finishOwn, values));
      if (finished === ENDED) throw transactionEnded();
      if (!isDone(finished)) throw leaseLost(lease);
      return { result, finished };
    } catch (error) {
      await rollBack(connection);
      throw error;
    }
  }

  /** A statement of the inbox, in contrast to those of the work. */
  async #run(connection: Connection, text: string, values: string[] = []) {
    try {
      return await connection.run(text, values);
    } catch (error) {
      throw isAborted(error) ? rolledBack() : unavailable(error);
    }
  }

  async #commit(connection: Connection, lease: Lease): Promise<void> {
    let command: string;
    try {
      ({ command } = await connection.run('COMMIT'));
    } catch (error) {
      // A deferred constraint, or a conflict: the database refused it. It is an error of the work, and complete.
      if (!isBroken(error)) throw error;
      connection.discard();
      if (await this.#wasCommitted(lease)) return;
      throw unavailable(error);
    }
    if (command !== 'COMMIT') throw rolledBack();
  }

  async #committed<R>(
    lease: Lease,
    { result, finished }: { result: R; finished: number },
  ): Promise<CommitResult<R>> {
    if (finished !== DONE_AND_RELEASE) return { result, nextDue: finished === DONE_AND_NEXT_DUE };
    // It is committed, so this must not fail. Maintenance releases what this could not.
    const rows = await this.source
      .query(`SELECT ${this.schema}.release_after($1::bigint, $2::text) AS next`, [
        lease.seq,
        toStored(lease.handler),
      ])
      .catch(() => []);
    return { result, nextDue: rows[0]?.['next'] === 't' };
  }

  /**
   * Reads the delivery on a connection of its own. The transaction may still be under way on the server; the read waits
   * for its lock.
   */
  async #wasCommitted(lease: Lease): Promise<boolean> {
    const until = this.runtime.monotonic() + OUTCOME_MS;
    for (;;) {
      try {
        const rows = await this.source.query(
          `SELECT d.state = 'done' AND d.token = $3::text::bigint AS settled FROM ${this.schema}.delivery d
            WHERE d.event = $1::text::bigint AND d.handler = $2::text FOR UPDATE`,
          leaseValues(lease),
        );
        return rows[0]?.['settled'] === 't';
      } catch {
        if (this.runtime.monotonic() >= until) break;
      }
      await new Promise<void>((resolve) => this.runtime.schedule(OUTCOME_PAUSE_MS, resolve));
    }
    throw new PaymentsError(
      'outcome_unknown',
      'The connection was cut while the transaction committed, and the database has not come back to report whether it ' +
        'did. If it did, the delivery is done; if not, it runs again when its lease ends.',
    );
  }
}

/** Whether an earlier statement of the transaction failed, and the work hid it. */
function isAborted(error: unknown): boolean {
  return sqlStateOf(error) === '25P02';
}

function leaseLost({ id, company, handler }: Lease): PaymentsError {
  return new PaymentsError(
    'lease_lost',
    `The lease of event ${id} (company ${company}) to ${handler} was lost before the commit, so nothing was committed ` +
      'and the delivery runs again. Raise "worker.leaseMs", or look for what blocks the event loop.',
  );
}

function rolledBack(): TypeError {
  return new TypeError(
    'The work of context.commit went on after one of its statements had failed, or ended the transaction itself; ' +
      'PostgreSQL rolled all of it back. Let the error through, or guard the statement with a savepoint.',
  );
}

function transactionEnded(): TypeError {
  return new TypeError(
    'The work of context.commit ran COMMIT or ROLLBACK, so the delivery could not be settled with it and runs again. ' +
      'Throw an error to roll back, and leave COMMIT to context.commit.',
  );
}
