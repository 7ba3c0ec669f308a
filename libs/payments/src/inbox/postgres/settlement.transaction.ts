import type { PaymentsRuntime } from '../../payments.runtime.js';
import { PaymentsError } from '../../payments.errors.js';
import type { Lease } from '../inbox-store.js';
import type { CommitGate } from './commit.gate.js';
import type { ConnectionSource } from './connection.source.js';
import { rollBack } from './connection.source.js';
import type { Connection } from './database.connection.js';
import { isBroken, unavailable } from './database.failure.js';
import { DONE, leaseValues, settledText, whereHeld } from './lease.statements.js';
import type { PostgresTransaction, RunTransaction } from './transaction.runner.js';

/** For how long the fate of a COMMIT that was not answered is asked for: a restart takes some seconds. */
const FATE_MS = 15_000;
const FATE_PAUSE_MS = 100;

/** `context.commit`: a handler's effects and the settlement of its delivery in one transaction. */
export class SettlementTransaction {
  constructor(
    private readonly source: ConnectionSource,
    private readonly schema: string,
    private readonly gate: CommitGate,
    private readonly runtime: PaymentsRuntime,
  ) {}

  /** In a transaction of the inbox's pool. */
  async commit<R>(lease: Lease, work: (tx: PostgresTransaction) => R | Promise<R>): Promise<R> {
    const leave = await this.gate.enter();
    try {
      const connection = await this.source.connect();
      try {
        const result = await this.#work(connection, lease, work);
        await this.#commit(connection, lease);
        return result;
      } finally {
        connection.release();
      }
    } finally {
      leave();
    }
  }

  /** In a transaction of the application's. */
  async commitWith<R>(
    lease: Lease,
    runTransaction: RunTransaction,
    work: (tx: unknown) => R | Promise<R>,
  ): Promise<R> {
    let outcome: { result: R } | { thrown: unknown } | null = null;
    let runnerFailure: { thrown: unknown } | null = null;
    try {
      await runTransaction<R>(async (open) => {
        outcome = null;
        try {
          const text = whereHeld(this.schema, DONE);
          if (!isHeld(await open.query(text, leaseValues(lease)))) throw leaseLost(lease);
          const result = await work(open.tx);
          outcome = { result };
          return result;
        } catch (thrown) {
          outcome = { thrown };
          throw thrown;
        }
      });
    } catch (thrown) {
      runnerFailure = { thrown };
    }
    // Written by the callback, which the compiler cannot know to have run.
    const ended = outcome as { result: R } | { thrown: unknown } | null;
    if (ended === null) {
      throw runnerFailure?.thrown ?? new TypeError('"runTransaction" has not called its work.');
    }
    if ('thrown' in ended) throw ended.thrown;
    // A runner that resolved may have rolled back all the same: a COMMIT after a statement that failed does
    // so without an error. One that rejected may have committed: its connection was cut before the answer.
    if (await this.#wasCommitted(lease)) return ended.result;
    throw runnerFailure?.thrown ?? rolledBack();
  }

  /** Settles first, so that a lease that was lost costs no work, and then nobody can take the delivery away. */
  async #work<R>(
    connection: Connection,
    lease: Lease,
    work: (tx: PostgresTransaction) => R | Promise<R>,
  ): Promise<R> {
    try {
      await this.#settle(connection, lease);
      return await work(connection.client);
    } catch (error) {
      await rollBack(connection);
      throw error;
    }
  }

  async #settle(connection: Connection, lease: Lease): Promise<void> {
    try {
      await connection.run('BEGIN');
      const { rows } = await connection.run(whereHeld(this.schema, DONE), leaseValues(lease));
      if (!isHeld(rows)) throw leaseLost(lease);
    } catch (error) {
      throw unavailable(error);
    }
  }

  async #commit(connection: Connection, lease: Lease): Promise<void> {
    let command: string;
    try {
      ({ command } = await connection.run('COMMIT'));
    } catch (error) {
      // A deferred constraint, a conflict: the database has said no. It is the work's error, and it is whole.
      if (!isBroken(error)) throw error;
      connection.discard();
      if (await this.#wasCommitted(lease)) return;
      throw unavailable(error);
    }
    if (command !== 'COMMIT') throw rolledBack();
  }

  /**
   * Reads the delivery back, on a connection of its own. The transaction may still be under way over there;
   * the read waits for its lock.
   */
  async #wasCommitted(lease: Lease): Promise<boolean> {
    const until = this.runtime.monotonic() + FATE_MS;
    for (;;) {
      try {
        const rows = await this.source.query(settledText(this.schema), leaseValues(lease));
        return rows[0]?.['settled'] === 't';
      } catch {
        if (this.runtime.monotonic() >= until) break;
      }
      await new Promise<void>((resolve) => this.runtime.schedule(FATE_PAUSE_MS, resolve));
    }
    throw new PaymentsError(
      'outcome_unknown',
      'The connection was cut while the transaction committed, and the database has not come back to say whether it ' +
        'did. If it did, the delivery is done; if not, it runs again when its lease ends.',
    );
  }
}

function isHeld(answer: readonly unknown[] | { readonly rows: readonly unknown[] }): boolean {
  const [row] = 'rows' in answer ? answer.rows : answer;
  // By position: a query builder may have renamed the column.
  const [changed] =
    typeof row === 'object' && row !== null ? (Object.values(row) as unknown[]) : [];
  if (changed === undefined) {
    throw new TypeError(
      'The "query" of "runTransaction" must resolve with the rows of its statement.',
    );
  }
  return Number(changed) === 1;
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
