import type { Lease } from '../inbox-store.js';
import { appended } from './attempt.history.js';
import { hidden } from './planner.hints.js';
import { toStored } from './stored.text.js';

/**
 * A statement that changes the delivery of a lease, where the lease is held: its token is the delivery's, and
 * it has not run out by the database's clock. (`clock_timestamp`, not `now`: the transaction may be old.) It
 * is a SELECT, since that is what every query builder hands the rows of, and `$1` to `$4` are the lease's,
 * all texts.
 *
 * It locks the row until its transaction ends: until then no other can claim the delivery, whatever becomes
 * of the lease meanwhile.
 */
export function whereHeld(schema: string, change: string): string {
  return `WITH changed AS (
  UPDATE ${schema}.deliveries d SET ${change}
   WHERE d.event = (SELECT e.seq FROM ${schema}.events e
                     WHERE e.company = $1::text AND e.id = $2::text)
     AND d.handler = $3::text AND d.token = $4::text::bigint
     AND d.state = 'running' AND ${hidden('d.due_at > clock_timestamp()')}
  RETURNING 1
) SELECT count(*)::integer AS changed FROM changed`;
}

export const DONE = `
  state = 'done',
  finished_at = clock_timestamp(),
  due_at = NULL,
  history = ${appended('clock_timestamp()', 'd')}`;

/** `$5` is the lease's length in milliseconds. */
export const EXTENDED = `due_at = clock_timestamp() + $5::float8 * interval '1 millisecond'`;

/** `$5` is the error, `$6` milliseconds until the next attempt, or NULL. */
export const FAILED = `
  last_error = $5::text,
  history = ${appended('clock_timestamp()', 'f', '$5::text')},
  state = CASE WHEN $6::float8 IS NULL THEN 'dead' ELSE 'pending' END,
  due_at = clock_timestamp() + $6::float8 * interval '1 millisecond',
  finished_at = CASE WHEN $6::float8 IS NULL THEN clock_timestamp() END`;

/** `$5` is when it is due, in milliseconds. */
export const RELEASED = `
  state = 'pending',
  attempts = d.attempts - 1,
  due_at = clock_timestamp() + $5::float8 * interval '1 millisecond'`;

/** Whether the delivery was settled with this lease. It waits for a transaction that is about to. */
export function settledText(schema: string): string {
  return `SELECT d.state = 'done' AND d.token = $4::text::bigint AS settled
  FROM ${schema}.deliveries d JOIN ${schema}.events e ON e.seq = d.event
 WHERE e.company = $1::text AND e.id = $2::text AND d.handler = $3::text FOR UPDATE OF d`;
}

export function leaseValues({ company, id, handler, token }: Lease): string[] {
  return [toStored(company), toStored(id), toStored(handler), String(token)];
}
