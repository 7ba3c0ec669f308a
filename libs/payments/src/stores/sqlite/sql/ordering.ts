import type { SqliteConnection } from '../thread/connection.js';

/** SQL for the queue of a delivery that becomes claimable again without an outcome. */
export const FREED_QUEUE = "iif(crashes > 0, 'suspect', 'due')";

/** SQL: whether a delivery of the handler `?1` and the ordering key `?2` is due at `?3` in a queue. Reads one index entry. */
const due = (queue: string): string =>
  `EXISTS (SELECT 1 FROM payments_inbox_delivery INDEXED BY payments_inbox_delivery_ordering
     WHERE state = 'pending' AND handler = ?1 AND ordering = ?2 AND queue = '${queue}' AND due_at <= ?3)`;

/** SQL: whether any delivery of the handler `?1` and the ordering key `?2` is pending and due at `?3`. */
export const ANY_DUE = ['waiting', 'due', 'suspect'].map(due).join(' OR ');

const RUNNING = `EXISTS (SELECT 1 FROM payments_inbox_delivery INDEXED BY payments_inbox_delivery_running
  WHERE state = 'running' AND handler = ?1 AND ordering = ?2)`;

const BUSY = `${RUNNING} OR ${due('waiting')} OR ${due('due')}`;

/**
 * Whether a due delivery must wait for its turn, because another delivery of its handler and ordering key runs or is
 * claimable now. When an attempt of the key ends, the next delivery becomes claimable. Therefore, a claim reads one
 * delivery of a key, not the whole backlog of the key. A suspect that is due does not make the delivery wait.
 */
export function isOrderingBusy(
  connection: SqliteConnection,
  handler: string,
  ordering: Uint8Array | null,
  clock: number,
): boolean {
  return ordering !== null && isTrue(connection, BUSY, [handler, ordering, clock]);
}

export function isOrderingRunning(
  connection: SqliteConnection,
  handler: string,
  ordering: Uint8Array | null,
): boolean {
  return ordering !== null && isTrue(connection, RUNNING, [handler, ordering]);
}

function isTrue(connection: SqliteConnection, condition: string, values: unknown[]): boolean {
  return connection.get<{ found: 0 | 1 }>(`SELECT ${condition} AS found`, values)!.found === 1;
}

/**
 * If no delivery of an ordering key runs, makes the earliest due waiting delivery of the key claimable. Call this
 * function after the delivery `seq` of the key was settled, freed or skipped. The next delivery keeps its due time, so
 * it stays before deliveries of the key that were received later. Returns whether there was a waiting delivery.
 */
export function releaseNext(connection: SqliteConnection, seq: number, handler: string): boolean {
  if (!hasWaiting(connection, handler)) return false;
  const next = connection.get<{ event: number }>(
    `SELECT next.event FROM payments_inbox_delivery ended
       CROSS JOIN payments_inbox_delivery next INDEXED BY payments_inbox_delivery_ordering
     WHERE ended.event = ?1 AND ended.handler = ?2 AND next.handler = ?2 AND next.ordering = ended.ordering
       AND next.state = 'pending' AND next.queue = 'waiting'
       AND NOT EXISTS (SELECT 1 FROM payments_inbox_delivery INDEXED BY payments_inbox_delivery_running
         WHERE state = 'running' AND handler = ?2 AND ordering = ended.ordering)
     ORDER BY next.due_at, next.event LIMIT 1`,
    [seq, handler],
  );
  if (next === undefined) return false;
  connection.run(
    `UPDATE payments_inbox_delivery SET queue = ${FREED_QUEUE} WHERE event = ? AND handler = ?`,
    [next.event, handler],
  );
  return true;
}

/**
 * Whether the handler has a waiting delivery. Most handlers have none, so one look-up is enough for all outcomes of a
 * batch.
 */
function hasWaiting(connection: SqliteConnection, handler: string): boolean {
  return connection.cached(`waiting ${handler}`, () => {
    const sql = `SELECT 1 FROM payments_inbox_delivery INDEXED BY payments_inbox_delivery_queue
      WHERE handler = ? AND queue = 'waiting' LIMIT 1`;
    return connection.get(sql, [handler]) !== undefined;
  });
}

/** Clears the cached result of {@link hasWaiting}. Call this function after a delivery of the handler began to wait. */
export function beganToWait(connection: SqliteConnection, handler: string): void {
  connection.uncache(`waiting ${handler}`);
}
