import { boundedError } from '../delivery-history.js';
import type { Lease } from '../inbox-store.js';
import type { SqliteConnection } from './sqlite.connection.js';
import { appended } from './sqlite.history.js';
import { toReadable, toStored } from './sqlite.text.js';

// The fence: a lease that ran out, or that another claim has followed, changes nothing. `?1` is the time.
const WHERE_HELD = `
  WHERE event_seq = (SELECT seq FROM payments_inbox_event WHERE id = ?2 AND company = ?3)
    AND handler = ?4 AND token = ?5 AND state = 'running' AND due_at > ?1`;

/** Prolongs a lease. */
export function extend(
  connection: SqliteConnection,
  { lease, leaseMs }: { readonly lease: Lease; readonly leaseMs: number },
  now: number,
): boolean {
  return settle(connection, 'due_at = ?1 + ?6', now, lease, leaseMs);
}

const DONE = `state = 'done', due_at = NULL, finished_at = ?1, history = ${appended('?1', 'd')}`;

/** Marks a delivery done. */
export function complete(
  connection: SqliteConnection,
  { lease }: { readonly lease: Lease },
  now: number,
): boolean {
  return settle(connection, DONE, now, lease);
}

const FAILED = `last_error = ?6, history = ${appended('?1', 'f', '?6')}`;
const DEAD = `state = 'dead', due_at = NULL, finished_at = ?1, ${FAILED}`;
const AGAIN = `state = 'pending', due_at = ?1 + ?7, ${FAILED}`;

/** Records a failure: due again in `retryInMs`, or dead. */
export function fail(
  connection: SqliteConnection,
  request: { readonly lease: Lease; readonly error: string; readonly retryInMs: number | null },
  now: number,
): boolean {
  const { lease, retryInMs } = request;
  const error = toReadable(boundedError(request.error));
  if (retryInMs === null) return settle(connection, DEAD, now, lease, error);
  return settle(connection, AGAIN, now, lease, error, retryInMs);
}

/** Gives a delivery back, due in `dueInMs`, without the attempt being charged. */
export function release(
  connection: SqliteConnection,
  { lease, dueInMs }: { readonly lease: Lease; readonly dueInMs: number },
  now: number,
): boolean {
  const set = "state = 'pending', attempts = attempts - 1, due_at = ?1 + ?6";
  return settle(connection, set, now, lease, dueInMs);
}

/** `values` are `?6` and `?7`. */
function settle(
  connection: SqliteConnection,
  set: string,
  now: number,
  { company, id, handler, token }: Lease,
  ...values: readonly unknown[]
): boolean {
  const sql = `UPDATE payments_inbox_delivery SET ${set} ${WHERE_HELD}`;
  return connection.run(sql, now, toStored(id), company, handler, token, ...values) === 1;
}
