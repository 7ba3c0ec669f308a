import { PaymentsError } from '../../../errors/payments-error.js';
import type { PaymentsRuntime } from '../../../runtime/payments-runtime.js';
import type { CommitResult, InboxStore, Lease } from '../../../inbox/store/inbox-store.js';
import type { Connection, ConnectionSource } from '../connection/connection-source.js';
import {
  breaksConnection,
  PostgresInboxError,
  rollBack,
  sqlStateOf,
  toInboxError,
} from '../connection/connection-source.js';
import type {
  PostgresTransaction,
  ResolvedPostgresOptions,
  RunTransaction,
} from '../postgres-options.js';
import type { WakeNotifier } from '../connection/wake-notifications.js';
import { FINISHED } from './settle.js';
import { toStored } from '../../sql/sql-connection.js';
import { leaseLost } from '../../sql/workers.js';

/**
 * Milliseconds for which the store tries to read the outcome of a COMMIT that got no response. A restart of the
 * database takes some seconds.
 */
const OUTCOME_MS = 15_000;
const OUTCOME_PAUSE_MS = 100;
/**
 * The name of a setting that lasts until the end of the transaction. If the setting is missing after the work has run,
 * the work has ended the transaction.
 */
const TRANSACTION_MARK = 'nestjs_payments.commit';

/** The result of the statement that settles the delivery if the work has ended the transaction. */
const TRANSACTION_ENDED = -1;

type Work<R> = (tx: PostgresTransaction) => R | Promise<R>;

/** The result of the work, and the result of the function `finish`. */
interface Done<R> {
  readonly result: R;
  readonly finished: number;
}

export function committing(
  source: ConnectionSource,
  schema: string,
  options: ResolvedPostgresOptions,
  runtime: PaymentsRuntime,
  notifier: Pick<WakeNotifier, 'notify'>,
): InboxStore<PostgresTransaction>['commit'] {
  const { pool, poolSize, connectTimeoutMs, runTransaction } = options;
  const connections =
    (pool as { options?: { max?: number } } | undefined)?.options?.max ?? poolSize;
  // The connections without a permit remain for receives, claims and outcomes.
  const permits = Math.max(1, connections - (connections >= 12 ? 4 : 2));
  const noConnection = (): Error =>
    new PostgresInboxError(
      `context.commit got no connection within ${connectTimeoutMs} ms, because ${permits} other calls are ` +
        'running, which is the maximum. Make the functions passed to context.commit faster, or raise ' +
        `${pool === undefined ? '"poolSize"' : '"max" of your "pool"'}.`,
      null,
    );
  const semaphore = new Semaphore(permits, connectTimeoutMs, noConnection, runtime);
  const finish = `${schema}.finish($1::text::bigint, $2::text, $3::text::bigint)`;

  async function commit<R>(lease: Lease, work: Work<R>): Promise<CommitResult<R>> {
    const releasePermit = await semaphore.acquire();
    let done: Done<R>;
    try {
      const connection = await source.connect();
      try {
        done = await runWork(connection, lease, work);
        await sendCommit(connection, lease);
      } finally {
        connection.release();
      }
    } finally {
      releasePermit();
    }
    return committed(done);
  }

  /** Runs the work in a transaction of the application's ORM or query builder, which commits the transaction. */
  async function commitWith<R>(
    run: RunTransaction,
    lease: Lease,
    work: Work<R>,
  ): Promise<CommitResult<R>> {
    let written: Done<R> | { thrown: unknown } | null = null;
    let runnerFailure: { thrown: unknown } | null = null;
    try {
      await run<R>(async (open) => {
        written = null;
        try {
          // The application ensures that the handler expects the transaction type of `runTransaction`.
          const result = await work(open.tx as PostgresTransaction);
          const response = await open
            .query(`SELECT ${finish} AS finished`, leaseValues(lease))
            .catch((error: unknown) => {
              throw isAborted(error) ? rolledBack() : error;
            });
          written = { result, finished: doneOf(response, lease) };
          return result;
        } catch (thrown) {
          written = { thrown };
          throw thrown;
        }
      });
    } catch (thrown) {
      runnerFailure = { thrown };
    }
    // The compiler does not know that the callback has assigned `written`.
    const done = written as Done<R> | { thrown: unknown } | null;
    if (done === null) {
      throw (
        runnerFailure?.thrown ??
        new TypeError('"runTransaction" has not called its work; it must call "work" once.')
      );
    }
    if ('thrown' in done) throw done.thrown;
    // A `runTransaction` that resolved may have rolled back, because a COMMIT after a failed statement rolls back
    // without an error. A `runTransaction` that rejected may have committed, because the connection may have been cut
    // before the response.
    if (await wasCommitted(lease)) return committed(done);
    throw runnerFailure?.thrown ?? rolledBack();
  }

  async function runWork<R>(connection: Connection, lease: Lease, work: Work<R>): Promise<Done<R>> {
    try {
      // Both statements take one round trip. Neither statement is a query, so the work may still set the isolation
      // level.
      const mark = `${lease.seq}-${lease.token}`;
      await runOwn(connection, `BEGIN; SET LOCAL ${TRANSACTION_MARK} = '${mark}'`);
      const result = await work(connection.client);
      const response = await runOwn(
        connection,
        `SELECT CASE WHEN current_setting('${TRANSACTION_MARK}', true) = $4::text THEN ${finish}
           ELSE ${TRANSACTION_ENDED} END AS finished`,
        [...leaseValues(lease), mark],
      );
      return { result, finished: doneOf(response, lease) };
    } catch (error) {
      await rollBack(connection);
      throw error;
    }
  }

  async function sendCommit(connection: Connection, lease: Lease): Promise<void> {
    let command: string;
    try {
      ({ command } = await connection.run('COMMIT'));
    } catch (error) {
      // The database rejected the COMMIT because of a deferred constraint or a conflict, which is an error of the work.
      if (!breaksConnection(error)) throw error;
      connection.release(true);
      if (await wasCommitted(lease)) return;
      throw toInboxError(error);
    }
    if (command !== 'COMMIT') throw rolledBack();
  }

  async function committed<R>({ result, finished }: Done<R>): Promise<CommitResult<R>> {
    if (finished !== FINISHED.nextHidden) return { result, nextDue: finished === FINISHED.nextDue };
    // The transaction is committed, so an error here must not reach the caller. Each heartbeat repeats the call.
    const text = `SELECT ${schema}.release_unreleased() AS released`;
    const nextDue = await source.query(text).then(
      ([row]) => row!['released'] === 't',
      () => false,
    );
    // The delivery that became claimable may be of another handler, because the call includes the keys of other
    // commits.
    if (nextDue) notifier.notify();
    return { result, nextDue };
  }

  /**
   * Returns whether the transaction was committed, after a COMMIT that got no response. The method reads the delivery
   * on another connection. If the server still runs the transaction, the read waits for the lock of the transaction.
   */
  async function wasCommitted(lease: Lease): Promise<boolean> {
    const until = runtime.monotonic() + OUTCOME_MS;
    for (;;) {
      try {
        const rows = await source.query(
          `SELECT d.state = 'done' AND d.token = $3::text::bigint AS settled FROM ${schema}.delivery d
            WHERE d.event = $1::text::bigint AND d.handler = $2::text FOR UPDATE`,
          leaseValues(lease),
        );
        return rows[0]?.['settled'] === 't';
      } catch {
        if (runtime.monotonic() >= until) break;
      }
      await new Promise<void>((resolve) => runtime.schedule(OUTCOME_PAUSE_MS, resolve));
    }
    throw new PaymentsError(
      'outcome_unknown',
      'The connection was cut during the COMMIT, and the database does not respond, so the outcome of the transaction is ' +
        'not known. If the transaction was committed, the delivery is done; if not, it runs again when its lease ends.',
    );
  }

  return runTransaction === undefined
    ? commit
    : (lease, work) => commitWith(runTransaction, lease, work);
}

/** Runs a statement of the inbox, not of the work. */
async function runOwn(connection: Connection, text: string, values: string[] = []) {
  try {
    return await connection.run(text, values);
  } catch (error) {
    throw isAborted(error) ? rolledBack() : toInboxError(error);
  }
}

function leaseValues({ seq, handler, token }: Lease): string[] {
  return [String(seq), toStored(handler), String(token)];
}

/** The first value of the first row in the response of a driver, an ORM or a query builder. */
export function firstValueOf(
  response: readonly unknown[] | { readonly rows: readonly unknown[] },
): unknown {
  const [row] = 'rows' in response ? response.rows : response;
  // The value is read by its position, because a query builder may have renamed the column.
  const [value] = typeof row === 'object' && row !== null ? (Object.values(row) as unknown[]) : [];
  if (value === undefined) {
    throw new TypeError(
      'The "query" of "runTransaction" or "tx" must resolve with the rows of its statement.',
    );
  }
  return value;
}

/** Throws if the delivery is not done. An unknown result counts as a lost lease. */
function doneOf(response: Parameters<typeof firstValueOf>[0], lease: Lease): number {
  const finished = Number(firstValueOf(response));
  if (finished === TRANSACTION_ENDED) throw transactionEnded();
  if (finished >= FINISHED.done && finished <= FINISHED.nextHidden) return finished;
  throw leaseLost(lease);
}

/** Whether the error means that an earlier statement of the transaction failed, and that the work caught its error. */
function isAborted(error: unknown): boolean {
  return sqlStateOf(error) === '25P02';
}

function rolledBack(): TypeError {
  return new TypeError(
    'The function passed to context.commit continued after one of its statements had failed, or it ended the ' +
      'transaction itself, so PostgreSQL rolled back all its writes. Do not catch the error of the statement, or ' +
      'run the statement in a savepoint.',
  );
}

function transactionEnded(): TypeError {
  return new TypeError(
    'The function passed to context.commit ran COMMIT or ROLLBACK itself, so the delivery could not be settled in the ' +
      'same transaction, and its handler runs again. To roll back, throw an error; context.commit runs COMMIT.',
  );
}

/** Limits how many tasks run at the same time. Other tasks wait in the order of their calls, for a limited time. */
export class Semaphore {
  readonly #waiting = new Set<() => void>();
  #running = 0;

  constructor(
    private readonly permits: number,
    private readonly maxWaitMs: number,
    private readonly timeoutError: () => Error,
    private readonly runtime: Pick<PaymentsRuntime, 'schedule'>,
  ) {}

  /** Takes a permit. Resolves to the function that returns the permit; call that function once. */
  async acquire(): Promise<() => void> {
    if (this.#running < this.permits) this.#running += 1;
    else await this.#wait();
    return () => this.#release();
  }

  /** Passes the permit to the task that has waited longest, before any new task can take it. */
  #release(): void {
    const [next] = this.#waiting;
    if (next) next();
    else this.#running -= 1;
  }

  #wait(): Promise<void> {
    return new Promise((resolve, reject) => {
      const start = (): void => {
        this.#waiting.delete(start);
        cancel();
        resolve();
      };
      const cancel = this.runtime.schedule(this.maxWaitMs, () => {
        this.#waiting.delete(start);
        reject(this.timeoutError());
      });
      this.#waiting.add(start);
    });
  }
}
