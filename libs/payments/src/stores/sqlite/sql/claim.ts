import type {
  ClaimedDelivery,
  ClaimRequest,
  EventSource,
  SuspectRequest,
} from '../../../inbox/store/inbox-store.js';
import type { SqliteConnection, Times } from '../thread/connection.js';
import type { SqliteSql } from '../thread/sqlite-sql.js';
import { unpaused } from './catalog.js';
import { beganToWait, isOrderingRunning } from './ordering.js';
import { fromStored } from '../../sql/sql-connection.js';
import { isLive } from './workers.js';

/** How many deliveries of a handler one claim makes wait. If a busy key has more, the next claim continues. */
const MAX_WAITING = 500;

interface DueRow {
  readonly event: number;
  readonly ordering: Uint8Array | null;
}

/** Leases due deliveries to a worker: of each handler, the earliest due first. */
export function claim(
  { connection, times }: SqliteSql,
  { workerId, wanted }: ClaimRequest,
): ClaimedDelivery[] {
  // A worker that was declared dead claims nothing: the next heartbeat of another worker would free the delivery while
  // this worker runs it.
  if (!isLive(connection, workerId)) return [];
  const limits = new Map(wanted.map(({ handler, limit }) => [handler, limit]));
  return unpaused(connection, [...limits.keys()]).flatMap((handler) =>
    claimOf(connection, workerId, handler, limits.get(handler)!, times),
  );
}

function claimOf(
  connection: SqliteConnection,
  workerId: string,
  handler: string,
  limit: number,
  times: Times,
): ClaimedDelivery[] {
  const claimed: ClaimedDelivery[] = [];
  let madeWaiting = 0;
  while (claimed.length < limit && madeWaiting <= MAX_WAITING) {
    // If one delivery of a busy key is due, more of the key are likely to follow.
    const size = madeWaiting === 0 ? limit - claimed.length : MAX_WAITING;
    const rows = findDue(connection, handler, size, times);
    for (const { event, ordering } of rows) {
      if (claimed.length === limit) break;
      if (isOrderingRunning(connection, handler, ordering)) {
        makeWait(connection, event, handler);
        madeWaiting += 1;
      } else {
        claimed.push(lease(connection, event, handler, workerId, times));
      }
    }
    if (rows.length < size) break;
  }
  return claimed;
}

function findDue(
  connection: SqliteConnection,
  handler: string,
  limit: number,
  { clock }: Times,
): DueRow[] {
  return connection.all<DueRow>(
    `SELECT event, ordering FROM payments_inbox_delivery INDEXED BY payments_inbox_delivery_queue
     WHERE handler = ? AND queue = 'due' AND due_at <= ?
     ORDER BY due_at, event LIMIT ?`,
    [handler, clock, limit],
  );
}

function makeWait(connection: SqliteConnection, seq: number, handler: string): void {
  connection.run(
    "UPDATE payments_inbox_delivery SET queue = 'waiting' WHERE event = ? AND handler = ?",
    [seq, handler],
  );
  beganToWait(connection, handler);
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
  readonly raw: Uint8Array;
  readonly headers: string;
}

/** Finds the trace context in the JSON of stored headers, which escapes all other quotes. */
const TRACEPARENT = /"traceparent":"([\da-f-]+)"/;

/** Makes a pending delivery running. This transaction has found it, so no other connection has changed it since. */
function lease(
  connection: SqliteConnection,
  seq: number,
  handler: string,
  workerId: string,
  { wall }: Times,
): ClaimedDelivery {
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
    raw: toBuffer(row.raw),
    crashes: row.crashes,
    traced: {
      traceparent: TRACEPARENT.exec(row.headers)?.[1] ?? null,
      eventType: fromStored(row.event_type),
    },
  };
}

/** Leases the earliest due suspect whose ordering key is free. */
export function claimSuspect(
  { connection, times }: SqliteSql,
  { workerId, handlers }: SuspectRequest,
): ClaimedDelivery | null {
  if (!isLive(connection, workerId)) return null;
  const due = unpaused(connection, handlers).flatMap((handler) => {
    const row = connection.get<{ event: number; due_at: number }>(
      `SELECT event, due_at FROM payments_inbox_delivery d INDEXED BY payments_inbox_delivery_queue
       WHERE handler = ? AND queue = 'suspect' AND due_at <= ?
         AND NOT EXISTS (
           SELECT 1 FROM payments_inbox_delivery INDEXED BY payments_inbox_delivery_running
           WHERE state = 'running' AND handler = d.handler AND ordering = d.ordering)
       ORDER BY due_at, event LIMIT 1`,
      [handler, times.clock],
    );
    return row === undefined ? [] : [{ ...row, handler }];
  });
  const [first] = due.toSorted((a, b) => a.due_at - b.due_at || a.event - b.event);
  return first ? lease(connection, first.event, first.handler, workerId, times) : null;
}

/** Milliseconds until the first delivery of these handlers becomes claimable; `null` if there is none. */
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

/** The same bytes as a `Buffer`, without a copy. */
function toBuffer({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength);
}
