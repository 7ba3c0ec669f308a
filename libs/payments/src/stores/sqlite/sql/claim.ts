import type {
  ClaimedDelivery,
  ClaimRequest,
  EventSource,
  SuspectRequest,
} from '../../../inbox/store/inbox-store.js';
import type { SqliteSql } from '../thread/connection.js';
import { beganToWait, isOrderingRunning } from './ordering.js';
import { fromStored } from '../../sql/sql-connection.js';
import { isLive, unpaused } from './workers.js';

/** A claim stops after it has marked this many deliveries of a handler as waiting. The next claim continues. */
const MAX_WAITING = 500;

const MAKE_WAIT =
  "UPDATE payments_inbox_delivery SET queue = 'waiting' WHERE event = ? AND handler = ?";

export function claim(sql: SqliteSql, { workerId, wanted }: ClaimRequest): ClaimedDelivery[] {
  const { connection } = sql;
  // A worker that was declared dead claims nothing, because the next heartbeat of another worker would free the
  // delivery while this worker runs it.
  if (!isLive(connection, workerId)) return [];
  const limits = new Map(wanted.map(({ handler, limit }) => [handler, limit]));
  return unpaused(connection, [...limits.keys()]).flatMap((handler) =>
    claimOf(sql, workerId, handler, limits.get(handler)!, 'due'),
  );
}

function claimOf(
  sql: SqliteSql,
  workerId: string,
  handler: string,
  limit: number,
  queue: 'due' | 'suspect',
): ClaimedDelivery[] {
  const { connection, times } = sql;
  const claimed: ClaimedDelivery[] = [];
  let madeWaiting = 0;
  while (claimed.length < limit && madeWaiting <= MAX_WAITING) {
    // If one delivery of a busy key is due, more deliveries of the key are likely to follow.
    const size = madeWaiting === 0 ? limit - claimed.length : MAX_WAITING;
    const rows = connection.all<{ event: number; ordering: Uint8Array | null }>(
      `SELECT event, ordering FROM payments_inbox_delivery INDEXED BY payments_inbox_delivery_queue
       WHERE handler = ? AND queue = ? AND due_at <= ?
       ORDER BY due_at, event LIMIT ?`,
      [handler, queue, times.clock, size],
    );
    for (const { event, ordering } of rows) {
      if (claimed.length === limit) break;
      if (isOrderingRunning(connection, handler, ordering)) {
        connection.run(MAKE_WAIT, [event, handler]);
        beganToWait(connection, handler);
        madeWaiting += 1;
      } else {
        claimed.push(lease(sql, event, handler, workerId));
      }
    }
    if (rows.length < size) break;
  }
  return claimed;
}

interface LeasedRow {
  readonly attempts: number;
  readonly token: number;
  readonly crashes: number;
  readonly company: string;
  readonly id: string;
  readonly received_at: number;
  readonly source: EventSource;
  readonly event_type: string;
  readonly raw: Buffer;
  readonly headers: string;
}

/** Finds the trace context in the JSON of stored headers, in which quotes within values are escaped. */
const TRACEPARENT = /"traceparent":"([\da-f-]+)"/;

/**
 * Leases a pending delivery. This transaction must have found the delivery, so that no other connection can have
 * changed it.
 */
function lease(
  { connection, times }: SqliteSql,
  seq: number,
  handler: string,
  workerId: string,
): ClaimedDelivery {
  const { wall } = times;
  const row = connection.get<LeasedRow>(
    `SELECT d.attempts, d.token, d.crashes, e.company, e.id, e.received_at, e.source,
       e.event_type, b.raw, b.headers
     FROM payments_inbox_delivery d
       CROSS JOIN payments_inbox_event e ON e.seq = d.event
       CROSS JOIN payments_inbox_body b ON b.event = d.event
     WHERE d.event = ? AND d.handler = ?`,
    [seq, handler],
  )!;
  connection.run(
    `UPDATE payments_inbox_delivery
     SET state = 'running', worker = ?, attempts = attempts + 1, token = token + 1, queue = NULL, due_at = NULL,
       started_at = ?
     WHERE event = ? AND handler = ?`,
    [workerId, wall, seq, handler],
  );
  return {
    company: row.company,
    id: fromStored(row.id),
    handler,
    token: row.token + 1,
    seq,
    attempt: row.attempts + 1,
    receivedAt: new Date(row.received_at),
    ageMs: Math.max(0, wall - row.received_at),
    source: row.source,
    raw: row.raw,
    crashes: row.crashes,
    traced: {
      traceparent: TRACEPARENT.exec(row.headers)?.[1] ?? null,
      eventType: fromStored(row.event_type),
    },
  };
}

export function claimSuspect(
  sql: SqliteSql,
  { workerId, handlers }: SuspectRequest,
): ClaimedDelivery | null {
  if (!isLive(sql.connection, workerId)) return null;
  for (const handler of unpaused(sql.connection, handlers)) {
    const [suspect] = claimOf(sql, workerId, handler, 1, 'suspect');
    if (suspect !== undefined) return suspect;
  }
  return null;
}

export function nextDueInMs(
  { connection, times }: SqliteSql,
  handlers: readonly string[],
): number | null {
  const dueTimes = unpaused(connection, handlers).flatMap((handler) => {
    const row = connection.get<{ due_at: number }>(
      `SELECT due_at FROM payments_inbox_delivery INDEXED BY payments_inbox_delivery_queue
       WHERE handler = ? AND queue = 'due' ORDER BY due_at LIMIT 1`,
      [handler],
    );
    return row === undefined ? [] : [row.due_at];
  });
  return dueTimes.length === 0 ? null : Math.min(...dueTimes) - times.clock;
}
