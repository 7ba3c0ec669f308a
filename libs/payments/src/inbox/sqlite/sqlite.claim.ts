import type { ClaimedDelivery, DeliveryState } from '../store.contract.js';
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
    `SELECT event_seq, due_at, lane, state
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
  for (const { event_seq, due_at, lane, state } of rows) {
    if (lane !== null && lanes.has(lane)) continue;
    if (lane !== null) lanes.add(lane);
    found.push({ event_seq, due_at, lane, state, handler });
    if (found.length === limit) break;
  }
  return found;
}

function lease(
  connection: SqliteConnection,
  { event_seq, handler, state }: Due,
  leaseMs: number,
  now: number,
): ClaimedMessage {
  const leased = connection.get<{ token: number; attempts: number }>(
    `UPDATE payments_inbox_delivery
     SET state = 'running', attempts = attempts + 1, token = token + 1, due_at = ?, started_at = ?,
       history = iif(state = 'running', ${LOST}, history)
     WHERE event_seq = ? AND handler = ? RETURNING token, attempts`,
    now + leaseMs,
    now,
    event_seq,
    handler,
  )!;
  const event = connection.get<{
    company: string;
    id: string;
    received_at: number;
    raw: Uint8Array;
    newer: number;
  }>(
    `SELECT e.company, e.id, e.received_at, b.raw, EXISTS (
       SELECT 1 FROM payments_inbox_delivery n INDEXED BY payments_inbox_delivery_done
       WHERE n.handler = d.handler AND n.lane = d.lane AND n.occurred_at > d.occurred_at
         AND n.state = 'done' AND n.lane IS NOT NULL) AS newer
     FROM payments_inbox_delivery d
     JOIN payments_inbox_event e ON e.seq = d.event_seq
     JOIN payments_inbox_body b ON b.event_seq = d.event_seq
     WHERE d.event_seq = ? AND d.handler = ?`,
    event_seq,
    handler,
  )!;
  return {
    company: event.company,
    id: fromStored(event.id),
    handler,
    token: leased.token,
    attempt: leased.attempts,
    receivedAt: event.received_at,
    ageMs: Math.max(0, now - event.received_at),
    raw: event.raw,
    newerHandled: event.newer === 1,
    takenOver: state === 'running',
  };
}
