import { describeThrown } from '../../../events/thrown.js';
import { PaymentsError } from '../../../payments.errors.js';

/** The database could not be reached, or refused. Whatever was asked of it may be asked again. */
export class PostgresInboxError extends PaymentsError {
  constructor(
    message: string,
    /** PostgreSQL's own code, e.g. `53300`; `null` where it never answered. */
    readonly sqlState: string | null,
  ) {
    super('inbox_unavailable', message);
  }
}

/** A prepared statement that should be there is not, or one is there that should not. */
const UNPREPARED = /^(26000|42P05)$/;
const POOLED =
  '. A pooler that gives each transaction another connection does this, unless it keeps prepared statements itself ' +
  '(PgBouncer 1.21 with "max_prepared_statements"): set "preparedStatements" of postgresInbox to false.';

/** What a statement failed with, as the family's error. Of the original only the message is kept: its other fields may quote a row. */
export function unavailable(thrown: unknown): PaymentsError {
  if (thrown instanceof PaymentsError) return thrown;
  const state = sqlStateOf(thrown);
  const mend = state !== null && UNPREPARED.test(state) ? POOLED : '';
  return new PostgresInboxError(
    `The PostgreSQL inbox failed: ${describeThrown(thrown)}${mend}`,
    state,
  );
}

/** PostgreSQL's code of what it answered; `null` where something else failed, a connection for one. */
export function sqlStateOf(thrown: unknown): string | null {
  if (typeof thrown !== 'object' || thrown === null) return null;
  if (thrown instanceof PostgresInboxError) return thrown.sqlState;
  const { code, severity } = thrown as { code?: unknown; severity?: unknown };
  // A system's error has a code too, and EPIPE has five letters; only a server's has a severity.
  return typeof code === 'string' && typeof severity === 'string' ? code : null;
}

/**
 * Whether the connection is to be thrown away: it is cut, or the server is going down, or it has become a
 * standby (25006: after a failover, every statement would fail on it for ever), or its prepared statements are
 * not those that the driver remembers.
 */
export function isBroken(thrown: unknown): boolean {
  const state = sqlStateOf(thrown);
  return state === null || UNPREPARED.test(state) || /^(08|57P|58|XX|25006)/.test(state);
}

/** Whether the same statement may succeed at once: a deadlock, or a conflict under a strict isolation level. */
export function isTransient(thrown: unknown): boolean {
  return /^(40001|40P01)$/.test(sqlStateOf(thrown) ?? '');
}

/** Whether it was the values, so that others stored together with them would have succeeded alone. */
export function isAboutValues(thrown: unknown): boolean {
  return /^(22|23|54)/.test(sqlStateOf(thrown) ?? '');
}
