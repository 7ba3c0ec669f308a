import { createHash } from 'node:crypto';
import type pg from 'pg';
import type { Client, Pool, PoolClient } from 'pg';
import { ModuleLogger, ThrottledLog } from '../../../errors/module-log.js';
import { optionsInvalid } from '../../../errors/option-checks.js';
import { describeError, PaymentsError } from '../../../errors/payments-error.js';
import { Backoff, STORE_BACKOFF } from '../../../runtime/backoff.js';
import { abortableDelay, withTimeLimit } from '../../../runtime/deadline.js';
import type { PaymentsRuntime } from '../../../runtime/payments-runtime.js';
import type { ResolvedPostgresOptions } from '../postgres-options.js';

/**
 * The error that is thrown if the inbox cannot reach the database or a statement fails. The operation can be retried.
 */
export class PostgresInboxError extends PaymentsError {
  constructor(
    message: string,
    /** PostgreSQL's own code, e.g. `53300`; `null` if PostgreSQL did not respond. */
    readonly sqlState: string | null,
  ) {
    super('inbox_unavailable', message);
  }
}

/** SQL states of a server that does not have the prepared statement (26000), or already has it (42P05). */
const PREPARED_STATEMENT_LOST = /^(26000|42P05)$/;
const POOLER_HINT =
  '. The cause is a pooler that gives each transaction another connection and does not support prepared statements ' +
  '(PgBouncer supports them since 1.21, with "max_prepared_statements"). To fix this, set "preparedStatements" of ' +
  'postgresInbox to false.';

/**
 * Converts the error of a statement to a {@link PaymentsError}. The result keeps only the message, because other fields
 * of the error may contain a row.
 */
export function toInboxError(error: unknown): PaymentsError {
  if (error instanceof PaymentsError) return error;
  const state = sqlStateOf(error);
  const hint = state !== null && PREPARED_STATEMENT_LOST.test(state) ? POOLER_HINT : '';
  return new PostgresInboxError(
    `The PostgreSQL inbox failed: ${describeError(error)}${hint}`,
    state,
  );
}

/** Returns PostgreSQL's code of an error; `null` if something else failed, such as the connection. */
export function sqlStateOf(error: unknown): string | null {
  if (typeof error !== 'object' || error === null) return null;
  if (error instanceof PostgresInboxError) return error.sqlState;
  const { code, severity } = error as { code?: unknown; severity?: unknown };
  // A system error such as EPIPE has a code too, but only an error of the server has a severity.
  return typeof code === 'string' && typeof severity === 'string' ? code : null;
}

/**
 * Whether the connection must be closed after an error. The connection must be closed if it is cut, if the server shuts
 * down, or if the server has become a standby (25006): after a failover, every statement on the connection would fail.
 * The connection must also be closed if the server and the driver have different prepared statements.
 */
export function breaksConnection(error: unknown): boolean {
  const state = sqlStateOf(error);
  return (
    state === null || PREPARED_STATEMENT_LOST.test(state) || /^(08|57P|58|XX|25006)/.test(state)
  );
}

/** The SQL state of an error that functions of the inbox raise in a transaction with a strict isolation level. */
export const STRICT_ISOLATION = 'PYISO';

/** Whether a deadlock or a strict isolation level caused the error. A retry may succeed. */
export function isConflict(error: unknown): boolean {
  return ['40001', '40P01', STRICT_ISOLATION].includes(sqlStateOf(error) ?? '');
}

/**
 * Whether a value that cannot be stored caused the error, so that the other events or outcomes of the batch can be
 * stored.
 */
export function isValueError(error: unknown): boolean {
  return /^(22|23|54)/.test(sqlStateOf(error) ?? '');
}

/** A row of a result. Every value is the text that PostgreSQL wrote. */
export type ResultRow = Readonly<Record<string, string | null>>;

export interface StatementResult {
  readonly rows: ResultRow[];
  readonly command: string;
  /** The number of rows that the statement changed or returned. */
  readonly count: number;
  /** The columns of the rows: the name of each column, and PostgreSQL's id (OID) of its type. */
  readonly columns: readonly { readonly name: string; readonly dataTypeID: number }[];
}

/** A parameter of a statement. Times and numbers are passed as numbers, and cast in the statement. */
export type Parameter =
  string | number | boolean | null | Buffer | readonly (string | number | Buffer | null)[];

/**
 * A frequent statement, which each connection parses once. The connection also keeps the plan of the statement. The
 * name is a hash of the text. Therefore, behind a pooler, a statement with this name that another client has prepared
 * is the same statement.
 */
export interface PreparedStatement {
  readonly name: string;
  readonly text: string;
}

export function prepared(text: string): PreparedStatement {
  const hash = createHash('sha256').update(text).digest('hex');
  return { name: `payments_${hash.slice(0, 24)}`, text };
}

/** Keeps every value as text, because an application may have replaced the driver's parsers, which all pools share. */
const AS_TEXT = { getTypeParser: () => (value: unknown) => value };

/** The client waits longer than the server, so that the timeout error of the server comes first. */
const CLIENT_GRACE_MS = 1000;

/** A connection from the pool, which the caller releases. */
export class Connection {
  readonly #ignoreError = (): void => {};
  #released = false;

  constructor(
    readonly client: PoolClient,
    private readonly timeoutMs: number,
    /** Whether the server keeps prepared statements for this connection. */
    private readonly prepares: boolean,
  ) {
    // The pool listens for errors of idle connections only, and an error event without a listener makes the process
    // exit. If an error occurs while a statement runs, the statement rejects.
    client.on('error', this.#ignoreError);
  }

  async run(
    statement: string | PreparedStatement,
    values: readonly Parameter[] = [],
    timeoutMs = this.timeoutMs,
  ): Promise<StatementResult> {
    const { name, text } =
      typeof statement === 'string' ? { name: undefined, text: statement } : statement;
    const query = {
      name: this.prepares ? name : undefined,
      text,
      values: [...values],
      types: AS_TEXT,
      // The driver has this option, but its types do not. The option ends the wait for a server that no longer
      // responds.
      query_timeout: timeoutMs + CLIENT_GRACE_MS,
    };
    const { rows, command, rowCount, fields } = await this.client.query(query);
    return { rows: rows as ResultRow[], command, count: rowCount ?? 0, columns: fields };
  }

  /** Returns the connection to the pool, or closes the connection if its state is unknown. */
  release(destroy = false): void {
    if (this.#released) return;
    this.#released = true;
    this.client.release(destroy);
    this.client.off('error', this.#ignoreError);
  }
}

/**
 * If a transaction on a connection of the inbox's own pool is idle for longer than this many milliseconds, its process
 * must be hanging.
 */
const IDLE_IN_TRANSACTION_MS = 60_000;
const KEEP_ALIVE_MS = 10_000;
/** The maximum number of repeats of a statement that had no effect because of a deadlock or a conflict. */
const MAX_REPEATS = 3;

type Driver = Pick<typeof pg, 'Pool' | 'Client'>;

export async function createPool(options: ResolvedPostgresOptions): Promise<Pool> {
  const { Pool } = await loadPgDriver();
  return new Pool({
    connectionString: options.connectionString,
    max: options.poolSize,
    connectionTimeoutMillis: options.connectTimeoutMs,
    statement_timeout: options.statementTimeoutMs,
    // This timeout is for the statements of context.commit, which belong to the application.
    query_timeout: options.statementTimeoutMs + 1000,
    idle_in_transaction_session_timeout: IDLE_IN_TRANSACTION_MS,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
    fallback_application_name: 'nestjs-payments',
  });
}

/**
 * `pg` is an optional peer dependency, which an application with another inbox does not install.
 *
 * @throws PaymentsError `options_invalid` if `pg` is not installed.
 */
export async function loadPgDriver(
  load: () => Promise<unknown> = () => import('pg'),
): Promise<Driver> {
  try {
    const loaded = (await load()) as Driver & { default?: Driver };
    // Before version 8.16, pg was a CommonJS module, and its exports may be under `default`.
    return loaded.default ?? loaded;
  } catch (error) {
    const { code } = error as { code?: unknown };
    if (code !== 'ERR_MODULE_NOT_FOUND' && code !== 'MODULE_NOT_FOUND') throw error;
    throw optionsInvalid(
      'postgresInbox needs the "pg" package, which is not installed: npm install pg',
    );
  }
}

/** Runs statements on connections of the pool. A failed call rejects with `inbox_unavailable` within a bounded time. */
export class ConnectionSource {
  readonly #log: ThrottledLog;
  readonly #onPoolError = (error: Error): void => this.#logFailure(error);
  #pool: Pool | null = null;
  /** Whether each transaction sets READ COMMITTED, because a connection had another default. */
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

  open(pool: Pool): void {
    this.#pool = pool;
    // A pool emits an error if an idle connection is cut. Without a listener, this error would make the process exit.
    pool.on('error', this.#onPoolError);
  }

  /** Makes later calls reject, and ends the pool unless the pool belongs to the application. */
  async close(): Promise<void> {
    const pool = this.#pool;
    this.#pool = null;
    if (this.settings.pool !== undefined) pool?.off('error', this.#onPoolError);
    // The inbox's own pool keeps the listener, because the server may cut its connections while they end.
    else if (pool !== null) await this.endWithinTimeout(pool.end());
  }

  /**
   * Waits until connections have ended, but only for a bounded time, because a handler may keep a connection or the
   * network may not respond.
   */
  async endWithinTimeout(ended: Promise<void>): Promise<void> {
    await withTimeLimit(ended, this.settings.connectTimeoutMs, this.runtime).catch(() => {});
  }

  /**
   * Creates a client outside the pool, with the options and the driver of the pool, because the application may have
   * another version of `pg`.
   */
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

  /** Takes a connection from the pool. The caller releases the connection. */
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

  /** Waits only for a bounded time, because a pool of the application may wait forever. */
  #takeFrom(pool: Pool): Promise<Connection> {
    const { connectTimeoutMs, statementTimeoutMs, preparedStatements } = this.settings;
    const taken = new Promise<Connection>((resolve, reject) => {
      // `connect` gets a callback, because the pool calls it immediately. Before this call, the pool has removed its
      // own error listener, and the packet that ended the handshake may also end the connection. With a promise instead
      // of a callback, the listener would be added after this error event.
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
        `The PostgreSQL inbox got no connection within ${connectTimeoutMs} ms: the database does not respond, or all ` +
          'connections of the pool are in use.',
        null,
      );
    });
  }

  async #repeatOnConflict<T>(work: (connection: Connection) => Promise<T>): Promise<T> {
    for (let repeats = 0; ; repeats += 1) {
      try {
        return await this.#withConnection(work);
      } catch (error) {
        this.#setsIsolation ||= sqlStateOf(error) === STRICT_ISOLATION;
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
      connection.release(breaksConnection(error));
      throw error;
    }
  }

  #logFailure(error: unknown): void {
    this.#log.error('database', () => `The database of the inbox failed: ${describeError(error)}`);
  }
}

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

/** Rolls back the transaction. If the rollback fails, closes the connection, which ends the transaction. */
export async function rollBack(connection: Connection): Promise<void> {
  try {
    await connection.run('ROLLBACK');
  } catch {
    connection.release(true);
  }
}

/** SQL states of a server that starts (57P03) or has no free connection (53300). */
const NOT_READY = /^(57P03|53300)$/;

/**
 * Checks the server before anything is stored. If the server cannot be reached, tries again for `startTimeoutMs`,
 * because a deployment may start the database and the application at the same time.
 *
 * @throws PaymentsError `inbox_unavailable`, with the cause and the options that may be wrong; `options_invalid` if the
 *   version or the encoding of the database is not supported
 */
export async function reachServer(
  source: Pick<ConnectionSource, 'query'>,
  startTimeoutMs: number,
  runtime: PaymentsRuntime,
): Promise<void> {
  const logger = new ModuleLogger('PostgresInbox');
  const end = runtime.monotonic() + startTimeoutMs;
  const backoff = new Backoff(runtime, STORE_BACKOFF);
  for (let tries = 1; ; tries += 1) {
    try {
      return await checkServer(source, logger);
    } catch (error) {
      if (!(error instanceof PostgresInboxError)) throw error;
      const waitMs = backoff.nextMs();
      const mayRecover = error.sqlState === null || NOT_READY.test(error.sqlState);
      if (!mayRecover || runtime.monotonic() + waitMs > end) {
        const times = tries === 1 ? '1 try' : `${tries} tries`;
        throw new PostgresInboxError(
          `${error.message.replace(/\.$/, '')}. The application gives up after ${times} and does not start. Check ` +
            'that the database is running, and that "connectionString" or "pool" of postgresInbox is right. If neither ' +
            'is set, check PGHOST and the other variables of PostgreSQL. To wait longer for a database that starts ' +
            'later, raise "startTimeoutMs".',
          error.sqlState,
        );
      }
      if (tries === 1) {
        logger.warn(
          `The application waits up to ${startTimeoutMs} ms for the database of the inbox ("startTimeoutMs").`,
        );
      }
      await abortableDelay(waitMs, runtime);
    }
  }
}

async function checkServer(
  source: Pick<ConnectionSource, 'query'>,
  logger: ModuleLogger,
): Promise<void> {
  const [row] = await source.query(`
    SELECT current_setting('server_version_num')::integer AS version,
           current_setting('server_encoding') AS encoding,
           current_setting('fsync') AS fsync`);
  const { version, encoding, fsync } = row!;
  if (Number(version) < 130_000) {
    throw optionsInvalid(
      'postgresInbox needs PostgreSQL 13 or later; this server is older. Upgrade it.',
    );
  }
  if (encoding !== 'UTF8') {
    throw optionsInvalid(
      `postgresInbox needs a database whose encoding is UTF8; this one has ${encoding}, which cannot store every ` +
        `event. Create one with: CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0`,
    );
  }
  if (fsync === 'off') {
    logger.warn(
      'The PostgreSQL server runs with fsync off, so a power failure may lose payment events that were acknowledged. ' +
        'Set fsync to on in the configuration of the server.',
    );
  }
}
