import type pg from 'pg';
import type { Client, Pool } from 'pg';
import { ModuleLogger, ThrottledLog } from '../../../errors/module-log.js';
import { PaymentsError, describeError } from '../../../errors/payments-error.js';
import { optionsInvalid } from '../../../errors/option-checks.js';
import { withTimeLimit } from '../../../runtime/deadline.js';
import type { PaymentsRuntime } from '../../../runtime/payments-runtime.js';
import type { ResolvedPostgresOptions } from '../postgres-options.js';
import { Connection, isConflict, PostgresInboxError, toInboxError } from './database-connection.js';
import type {
  Parameter,
  PreparedStatement,
  ResultRow,
  StatementResult,
} from './database-connection.js';

/** How long a transaction on the inbox's own pool may be idle, in milliseconds. After that, its process must be hanging. */
const IDLE_IN_TRANSACTION_MS = 60_000;
const KEEP_ALIVE_MS = 10_000;
/** How often a statement is repeated after a deadlock or a conflict, in which it had no effect. */
const MAX_REPEATS = 3;

/** The exports of the `pg` package that the inbox uses. */
type Driver = Pick<typeof pg, 'Pool' | 'Client'>;

/** The pool of the inbox, if the application passes none. */
export async function createPool(options: ResolvedPostgresOptions): Promise<Pool> {
  const { Pool } = await loadPgDriver();
  return new Pool({
    connectionString: options.connectionString,
    max: options.poolSize,
    connectionTimeoutMillis: options.connectTimeoutMs,
    statement_timeout: options.statementTimeoutMs,
    // For the statements of context.commit, which are the application's own.
    query_timeout: options.statementTimeoutMs + 1000,
    idle_in_transaction_session_timeout: IDLE_IN_TRANSACTION_MS,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
    fallback_application_name: 'nestjs-payments',
  });
}

/**
 * Loads `pg` on first use: it is an optional peer dependency, which an application with another inbox does not install.
 *
 * @throws PaymentsError `options_invalid` if it is not installed.
 */
export async function loadPgDriver(
  load: () => Promise<unknown> = () => import('pg'),
): Promise<Driver> {
  try {
    const loaded = (await load()) as Driver & { default?: Driver };
    // Before version 8.16, pg was CommonJS only, whose exports may be under `default`.
    return loaded.default ?? loaded;
  } catch (error) {
    const { code } = error as { code?: unknown };
    if (code !== 'ERR_MODULE_NOT_FOUND' && code !== 'MODULE_NOT_FOUND') throw error;
    throw optionsInvalid(
      'postgresInbox needs the "pg" package, which is not installed: npm install pg',
    );
  }
}

/** Runs the inbox's statements on connections of the pool. Failures reject with `inbox_unavailable` in bounded time. */
export class ConnectionSource {
  readonly #log: ThrottledLog;
  readonly #onPoolError = (error: Error): void => this.#logFailure(error);
  #pool: Pool | null = null;
  /** Whether each transaction sets READ COMMITTED, because the database has another default. */
  #setsIsolation = false;

  constructor(
    private readonly settings: Pick<
      ResolvedPostgresOptions,
      'pool' | 'connectTimeoutMs' | 'statementTimeoutMs' | 'preparedStatements'
    >,
    private readonly runtime: PaymentsRuntime,
  ) {
    this.#log = new ThrottledLog(new ModuleLogger('PostgresInbox'), runtime);
  }

  /** Starts to use a pool. */
  open(pool: Pool): void {
    this.#pool = pool;
    // A pool emits an error if an idle connection is cut. Without a listener, that would end the process.
    pool.on('error', this.#onPoolError);
  }

  /** From now on, each transaction sets READ COMMITTED, which the statements of the inbox need. */
  setIsolation(): void {
    this.#setsIsolation = true;
  }

  /** Rejects later calls, and ends the pool if it is not the application's. */
  async close(): Promise<void> {
    const pool = this.#pool;
    this.#pool = null;
    if (this.settings.pool !== undefined) pool?.off('error', this.#onPoolError);
    // The module's own pool keeps the listener: the server may cut its connections while they end.
    else if (pool !== null) await this.endWithinTimeout(pool.end());
  }

  /** Waits until connections have ended, for a bounded time: a handler may keep one, or the network may be silent. */
  async endWithinTimeout(ended: Promise<void>): Promise<void> {
    const ms = this.settings.connectTimeoutMs;
    const late = (): Error => new Error(`The connections did not end within ${ms} ms.`);
    await withTimeLimit(ended, ms, this.runtime, late).catch(() => {});
  }

  /** A client outside the pool, with the pool's options and driver: the application may have another version of `pg`. */
  createClient(): Client {
    const { Client, options } = this.#openPool() as unknown as {
      Client: new (options: unknown) => Client;
      options: object;
    };
    return new Client(options);
  }

  /** Runs one statement, in a transaction of its own. */
  async run(
    statement: string | PreparedStatement,
    values: readonly Parameter[] = [],
  ): Promise<StatementResult> {
    return this.#repeatOnConflict((connection) => {
      const run = (): Promise<StatementResult> => connection.run(statement, values);
      return this.#setsIsolation ? inTransaction(connection, run) : run();
    });
  }

  /** Runs one statement, in a transaction of its own; returns its rows. */
  async query(
    statement: string | PreparedStatement,
    values: readonly Parameter[] = [],
  ): Promise<ResultRow[]> {
    return (await this.run(statement, values)).rows;
  }

  /** Runs statements in one transaction, which may be repeated from the start. */
  async transaction<T>(work: (connection: Connection) => Promise<T>): Promise<T> {
    return this.#repeatOnConflict((connection) =>
      inTransaction(connection, () => work(connection)),
    );
  }

  /** Takes a connection, which the caller releases. */
  async connect(): Promise<Connection> {
    const pool = this.#openPool();
    try {
      return await this.#takeFrom(pool);
    } catch (error) {
      this.#logFailure(error);
      throw toInboxError(error);
    }
  }

  #openPool(): Pool {
    if (this.#pool !== null) return this.#pool;
    throw new PostgresInboxError('The PostgreSQL inbox is closed or not open yet.', null);
  }

  /** Waits a bounded time: an application's pool may wait forever. */
  #takeFrom(pool: Pool): Promise<Connection> {
    const { connectTimeoutMs, statementTimeoutMs, preparedStatements } = this.settings;
    const taken = new Promise<Connection>((resolve, reject) => {
      // A callback, because the pool calls it at once. The pool has just removed its own error listener, and the packet
      // that ended the handshake may also end the connection: a promise would be too late for that error event.
      pool.connect((error, client) => {
        if (client) resolve(new Connection(client, statementTimeoutMs, preparedStatements));
        else reject(error ?? new Error('the pool returned neither a connection nor an error'));
      });
    });
    return withTimeLimit(taken, connectTimeoutMs, this.runtime, () => {
      void taken.then(
        (connection) => connection.release(),
        () => {},
      );
      return new PostgresInboxError(
        `The PostgreSQL inbox had no connection within ${connectTimeoutMs} ms.`,
        null,
      );
    });
  }

  async #repeatOnConflict<T>(work: (connection: Connection) => Promise<T>): Promise<T> {
    for (let repeats = 0; ; repeats += 1) {
      try {
        return await this.#withConnection(work);
      } catch (error) {
        if (repeats < MAX_REPEATS && isConflict(error)) continue;
        // A PaymentsError was logged where it was created.
        if (!(error instanceof PaymentsError)) this.#logFailure(error);
        throw toInboxError(error);
      }
    }
  }

  async #withConnection<T>(work: (connection: Connection) => Promise<T>): Promise<T> {
    const connection = await this.connect();
    try {
      const result = await work(connection);
      connection.release();
      return result;
    } catch (error) {
      connection.release(error);
      throw error;
    }
  }

  #logFailure(error: unknown): void {
    this.#log.error('database', () => `The inbox's PostgreSQL failed: ${describeError(error)}`);
  }
}

/** Begins, runs and commits, or rolls back and rethrows. */
async function inTransaction<T>(connection: Connection, work: () => Promise<T>): Promise<T> {
  await connection.run('BEGIN ISOLATION LEVEL READ COMMITTED');
  try {
    const result = await work();
    await connection.run('COMMIT');
    return result;
  } catch (error) {
    await rollBack(connection);
    throw error;
  }
}

/** Rolls back. If that fails too, it closes the connection, which ends the transaction. */
export async function rollBack(connection: Connection): Promise<void> {
  try {
    await connection.run('ROLLBACK');
  } catch {
    connection.discard();
  }
}
