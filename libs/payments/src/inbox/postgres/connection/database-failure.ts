import { describeError, PaymentsError } from '../../../errors/payments-error.js';

/** The database could not be reached, or refused. The operation can be retried. */
export class PostgresInboxError extends PaymentsError {
  constructor(
    message: string,
    /** PostgreSQL's own code, e.g. `53300`; `null` if it did not answer. */
    readonly sqlState: string | null,
  ) {
    super('inbox_unavailable', message);
  }
}

/** A prepared statement is missing, or exists although it should not. */
const UNPREPARED = /^(26000|42P05)$/;
const POOLED =
  '. A pooler that gives each transaction another connection does this, unless it keeps prepared statements itself ' +
  '(PgBouncer 1.21 with "max_prepared_statements"): set "preparedStatements" of postgresInbox to false.';

/** The error of a statement as a {@link PaymentsError}. It keeps only the message, since other fields may quote a row. */
export function unavailable(thrown: unknown): PaymentsError {
  if (thrown instanceof PaymentsError) return thrown;
  const state = sqlStateOf(thrown);
  const fix = state !== null && UNPREPARED.test(state) ? POOLED : '';
  return new PostgresInboxError(
    `The PostgreSQL inbox failed: ${describeError(thrown)}${fix}`,
    state,
  );
}

/** PostgreSQL's code of its error; `null` if something else failed, such as the connection. */
export function sqlStateOf(thrown: unknown): string | null {
  if (typeof thrown !== 'object' || thrown === null) return null;
  if (thrown instanceof PostgresInboxError) return thrown.sqlState;
  const { code, severity } = thrown as { code?: unknown; severity?: unknown };
  // A system error has a code too, such as EPIPE; only one of the server has a severity.
  return typeof code === 'string' && typeof severity === 'string' ? code : null;
}

/**
 * Whether to close the connection: it is cut, or the server shuts down, or the server has become a standby (25006: after a
 * failover, every statement on it would fail), or its prepared statements are not those that the driver remembers.
 */
export function isBroken(thrown: unknown): boolean {
  const state = sqlStateOf(thrown);
  return state === null || UNPREPARED.test(state) || /^(08|57P|58|XX|25006)/.test(state);
}

/** Whether the same statement may succeed at once: a deadlock, or a conflict under a strict isolation level. */
export function isTransient(thrown: unknown): boolean {
  return /^(40001|40P01)$/.test(sqlStateOf(thrown) ?? '');
}

/** Whether the values caused it, so that others of the same batch would succeed alone. */
export function isAboutValues(thrown: unknown): boolean {
  return /^(22|23|54)/.test(sqlStateOf(thrown) ?? '');
}
