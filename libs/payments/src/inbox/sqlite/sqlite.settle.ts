import type { Lease } from '../store.contract.js';
import type { SqliteConnection } from './sqlite.connection.js';
import { toReadable, toStored } from './sqlite.text.js';

// The fence: a lease that ran out, or that another claim has followed, changes nothing.
const WHERE_HELD = `
  WHERE event_seq = (SELECT seq FROM payments_inbox_event WHERE id = ? AND company = ?)
    AND handler = ? AND token = ? AND state = 'running' AND due_at > ?`;

/** Prolongs a lease. */
export function extend(
  connection: SqliteConnection,
  { lease, leaseMs }: { readonly lease: Lease; readonly leaseMs: number },
  now: number,
): boolean {
  return settle(connection, 'due_at = ?', [now + leaseMs], lease, now);
}

/** Marks a delivery done. */
export function complete(
  connection: SqliteConnection,
  { lease }: { readonly lease: Lease },
  now: number,
): boolean {
  const set = "state = 'done', due_at = NULL, finished_at = ?";
  return settle(connection, set, [now], lease, now);
}

/** Records a failure: due again in `retryInMs`, or dead. */
export function fail(
  connection: SqliteConnection,
  request: { readonly lease: Lease; readonly error: string; readonly retryInMs: number | null },
  now: number,
): boolean {
  const error = toReadable(request.error);
  if (request.retryInMs === null) {
    const set = "state = 'dead', due_at = NULL, last_error = ?, finished_at = ?";
    return settle(connection, set, [error, now], request.lease, now);
  }
  const set = "state = 'pending', last_error = ?, due_at = ?";
  return settle(connection, set, [error, now + request.retryInMs], request.lease, now);
}

/** Gives a delivery back, due in `dueInMs`, without the attempt being charged. */
export function release(
  connection: SqliteConnection,
  { lease, dueInMs }: { readonly lease: Lease; readonly dueInMs: number },
  now: number,
): boolean {
  const set = "state = 'pending', attempts = attempts - 1, due_at = ?";
  return settle(connection, set, [now + dueInMs], lease, now);
}

function settle(
  connection: SqliteConnection,
  set: string,
  values: readonly unknown[],
  { company, id, handler, token }: Lease,
  now: number,
): boolean {
  const sql = `UPDATE payments_inbox_delivery SET ${set} ${WHERE_HELD}`;
  return connection.run(sql, ...values, toStored(id), company, handler, token, now) === 1;
}
