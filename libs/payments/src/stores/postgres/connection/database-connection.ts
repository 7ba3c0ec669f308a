import { createHash } from 'node:crypto';
import type { PoolClient } from 'pg';
import { describeError, PaymentsError } from '../../../errors/payments-error.js';

/** The inbox could not reach the database, or a statement failed. The operation can be retried. */
export class PostgresInboxError extends PaymentsError {
  constructor(
    message: string,
    /** PostgreSQL's own code, e.g. `53300`; `null` if PostgreSQL did not respond. */
    readonly sqlState: string | null,
  ) {
    super('inbox_unavailable', message);
  }
}

/** SQL states of a prepared statement that is missing, or that exists although it should not. */
const PREPARED_STATEMENT_LOST = /^(26000|42P05)$/;
const POOLER_HINT =
  '. A pooler that gives each transaction another connection causes this, unless it keeps prepared statements itself ' +
  '(PgBouncer 1.21 with "max_prepared_statements"): set "preparedStatements" of postgresInbox to false.';

/** The error of a statement as a {@link PaymentsError}. It keeps only the message, since other fields may quote a row. */
export function toInboxError(error: unknown): PaymentsError {
  if (error instanceof PaymentsError) return error;
  const state = sqlStateOf(error);
  const hint = state !== null && PREPARED_STATEMENT_LOST.test(state) ? POOLER_HINT : '';
  return new PostgresInboxError(
    `The PostgreSQL inbox failed: ${describeError(error)}${hint}`,
    state,
  );
}

/** PostgreSQL's code of its error; `null` if something else failed, such as the connection. */
export function sqlStateOf(error: unknown): string | null {
  if (typeof error !== 'object' || error === null) return null;
  if (error instanceof PostgresInboxError) return error.sqlState;
  const { code, severity } = error as { code?: unknown; severity?: unknown };
  // A system error such as EPIPE has a code too, but only an error of the server has a severity.
  return typeof code === 'string' && typeof severity === 'string' ? code : null;
}

/**
 * Whether to close the connection after an error: the connection is cut, the server shuts down, the server has become a
 * standby (25006: after a failover, every statement on it would fail), or the server and the driver do not have the same
 * prepared statements.
 */
export function breaksConnection(error: unknown): boolean {
  const state = sqlStateOf(error);
  return (
    state === null || PREPARED_STATEMENT_LOST.test(state) || /^(08|57P|58|XX|25006)/.test(state)
  );
}

/** Whether the same statement may succeed if it is repeated: a deadlock, or a conflict under a strict isolation level. */
export function isConflict(error: unknown): boolean {
  return /^(40001|40P01)$/.test(sqlStateOf(error) ?? '');
}

/** Whether a value that cannot be stored caused the error. The other events or outcomes of the batch can be stored. */
export function isValueError(error: unknown): boolean {
  return /^(22|23|54)/.test(sqlStateOf(error) ?? '');
}

/** A row of a result. Every value is the text that PostgreSQL wrote. */
export type ResultRow = Readonly<Record<string, string | null>>;

/** The result of a statement. */
export interface StatementResult {
  readonly rows: ResultRow[];
  readonly command: string;
  /** How many rows it changed or returned. */
  readonly count: number;
  /** The columns of the rows, with the numbers of their types. */
  readonly columns: readonly { readonly name: string; readonly dataTypeID: number }[];
}

/** A parameter of a statement. Times and numbers are passed as numbers, and cast in the statement. */
export type Parameter =
  string | number | boolean | null | Buffer | readonly (string | number | Buffer | null)[];

/**
 * A frequent statement, which each connection parses once and keeps the plan of. Its name is a hash of its text: behind a
 * pooler, a statement of that name that another client prepared is the same statement.
 */
export interface PreparedStatement {
  readonly name: string;
  readonly text: string;
}

/** Gives a statement the name under which connections prepare it. */
export function prepared(text: string): PreparedStatement {
  const hash = createHash('sha256').update(text).digest('hex');
  return { name: `payments_${hash.slice(0, 24)}`, text };
}

/** Leaves every value a text: an application may have replaced the driver's parsers, which all pools share. */
const AS_TEXT = { getTypeParser: () => (value: unknown) => value };

/** How much longer than the server the client waits for a statement, so that the server's timeout error comes first. */
const CLIENT_GRACE_MS = 1000;

/** A connection from the pool. The caller releases it. */
export class Connection {
  readonly #ignoreError = (): void => {};
  #released = false;

  constructor(
    readonly client: PoolClient,
    private readonly timeoutMs: number,
    /** Whether the server keeps prepared statements for this connection. */
    private readonly prepares: boolean,
  ) {
    // The pool listens for errors of idle connections only, and an error event without a listener ends the process. The
    // statement that runs at that moment rejects.
    client.on('error', this.#ignoreError);
  }

  /** Runs one statement, for a bounded time. */
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
      // The driver has this option, but its types do not. It ends the wait for a server that no longer responds.
      query_timeout: timeoutMs + CLIENT_GRACE_MS,
    };
    const { rows, command, rowCount, fields } = await this.client.query(query);
    return { rows: rows as ResultRow[], command, count: rowCount ?? 0, columns: fields };
  }

  /** Returns the connection to the pool, or closes it if the error may have broken it. */
  release(error?: unknown): void {
    this.#release(error !== undefined && breaksConnection(error));
  }

  /** Closes the connection, because its state is unknown. */
  discard(): void {
    this.#release(true);
  }

  #release(destroy: boolean): void {
    if (this.#released) return;
    this.#released = true;
    this.client.release(destroy);
    this.client.off('error', this.#ignoreError);
  }
}
