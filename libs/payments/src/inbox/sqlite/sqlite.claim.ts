import type { ClaimedDelivery, DeliveryState } from '../inbox-store.js';
import type { SqliteConnection } from './sqlite.connection.js';
import { appended } from './sqlite.history.js';
import { pausedHandlers } from './sqlite.pause.js';
import { fromStored } from './sqlite.text.js';

/** A {@link ClaimedDelivery} on its way from the thread. */
export interface ClaimedMessage extends Omit<ClaimedDelivery, 'raw' | 'receivedAt'> {
  readonly receivedAt: number;
  readonly raw: Uint8Array;
}

export interface ClaimRequest {
  readonly handlers: readonly string[];
  readonly limit: number;
  readonly leaseMs: number;
}

interface DueRow {
  readonly event_seq: number;
  readonly due_at: number;
  readonly lane: string | null;
  readonly state: DeliveryState;
  readonly occurred_at: number;
  readonly attempts: number;
  readonly token: number;
}

interface Due extends DueRow {
  readonly handler: string;
}

/** Of the attempt before, whose lease ran out when the delivery fell due. */
const LOST = appended('due_at', 'l');

/** Leases due deliveries, the longest due first. */
export function claim(
  connection: SqliteConnection,
  { handlers, limit, leaseMs }: ClaimRequest,
  now: number,
): ClaimedMessage[] {
  const paused = new Set(pausedHandlers(connection));
  if (paused.has('*')) return [];
  const due = [...new Set(handlers)]
    .filter((handler) => !paused.has(handler))
    .flatMap((handler) => findDue(connection, handler, limit, now));
  due.sort((a, b) => a.due_at - b.due_at || a.event_seq - b.event_seq);
  return due.slice(0, limit).map((row) => lease(connection, row, leaseMs, now));
}

/**
 * The handler's longest due deliveries, at most one of each ordering key, none of a key that is leased. Each
 * handler is asked by itself, or the backlog of a paused one would be read again with every claim.
 */
function findDue(connection: SqliteConnection, handler: string, limit: number, now: number): Due[] {
  const found: Due[] = [];
  const lanes = new Set<string>();
  const rows = connection.iterate<DueRow>(
    `SELECT event_seq, due_at, lane, state, occurred_at, attempts, token
     FROM payments_inbox_delivery INDEXED BY payments_inbox_delivery_due
     WHERE handler = ? AND due_at <= ? AND (lane IS NULL OR lane NOT IN (
       SELECT lane FROM payments_inbox_delivery INDEXED BY payments_inbox_delivery_leased
       WHERE handler = ? AND state = 'running' AND lane IS NOT NULL AND due_at > ?))
     ORDER BY due_at, event_seq`,
    handler,
    now,
    handler,
    now,
  );
  for (const row of rows) {
    const { lane } = row;
    if (lane !== null && lanes.has(lane)) continue;
    if (lane !== null) lanes.add(lane);
    found.push({ ...row, handler });
    if (found.length === limit) break;
  }
  return found;
}

/** What is due was read under the lock of this transaction: nobody has changed it since. */
function lease(
  connection: SqliteConnection,
  { event_seq, handler, lane, state, occurred_at, attempts, token }: Due,
  leaseMs: number,
  now: number,
): ClaimedMessage {
  connection.run(
    `UPDATE payments_inbox_delivery
     SET state = 'running', attempts = attempts + 1, token = token + 1, due_at = ?, started_at = ?,
       history = iif(state = 'running', ${LOST}, history)
     WHERE event_seq = ? AND handler = ?`,
    now + leaseMs,
    now,
    event_seq,
    handler,
  );
  const event = connection.get<{
    company: string;
    id: string;
    received_at: number;
    raw: Uint8Array;
    newer: number;
  }>(
    `SELECT e.company, e.id, e.received_at, b.raw, EXISTS (
       SELECT 1 FROM payments_inbox_delivery INDEXED BY payments_inbox_delivery_done
       WHERE handler = ? AND lane = ? AND occurred_at > ? AND state = 'done' AND lane IS NOT NULL) AS newer
     FROM payments_inbox_event e JOIN payments_inbox_body b ON b.event_seq = e.seq
     WHERE e.seq = ?`,
    handler,
    lane,
    occurred_at,
    event_seq,
  )!;
  return {
    company: event.company,
    id: fromStored(event.id),
    handler,
    token: token + 1,
    attempt: attempts + 1,
    receivedAt: event.received_at,
    ageMs: Math.max(0, now - event.received_at),
    raw: event.raw,
    newerHandled: event.newer === 1,
    takenOver: state === 'running',
  };
}
