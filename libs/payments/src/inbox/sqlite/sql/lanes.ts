import type { SqliteConnection } from '../thread/connection.js';

/** What the deliveries of one company, handler and ordering key do. */
export interface LaneState {
  readonly running: boolean;
  readonly held: boolean;
  /** Whether one is pending and due, held or not. */
  readonly due: boolean;
}

const FREE: LaneState = { running: false, held: false, due: false };

/** The state of the handler's deliveries with that ordering key. */
export function laneState(
  connection: SqliteConnection,
  handler: string,
  lane: string | null,
  clock: number,
): LaneState {
  if (lane === null) return FREE;
  const row = connection.get<{ running: number; held: number; due: number }>(
    `SELECT
       EXISTS (SELECT 1 FROM payments_inbox_delivery INDEXED BY payments_inbox_delivery_running
         WHERE state = 'running' AND handler = ?1 AND lane = ?2) AS running,
       EXISTS (SELECT 1 FROM payments_inbox_delivery INDEXED BY payments_inbox_delivery_lane
         WHERE state = 'pending' AND handler = ?1 AND lane = ?2 AND held = 1) AS held,
       EXISTS (SELECT 1 FROM payments_inbox_delivery INDEXED BY payments_inbox_delivery_lane
         WHERE state = 'pending' AND handler = ?1 AND lane = ?2 AND held = 0 AND due_at <= ?3) AS due`,
    handler,
    lane,
    clock,
  )!;
  return { running: row.running === 1, held: row.held === 1, due: row.held + row.due > 0 };
}

/** Whether a delivery of that ordering key runs. */
export function isLaneRunning(
  connection: SqliteConnection,
  handler: string,
  lane: string | null,
): boolean {
  if (lane === null) return false;
  const row = connection.get(
    `SELECT 1 FROM payments_inbox_delivery INDEXED BY payments_inbox_delivery_running
     WHERE state = 'running' AND handler = ? AND lane = ?`,
    handler,
    lane,
  );
  return row !== undefined;
}

/**
 * Makes the longest due held delivery of the ordering key claimable, if none of the key runs. It keeps its due time,
 * which is past, so that it stays before those of its key that were received later.
 */
export function releaseNext(
  connection: SqliteConnection,
  handler: string,
  lane: string | null,
): boolean {
  if (lane === null || isLaneRunning(connection, handler, lane)) return false;
  const next = connection.get<{ event_seq: number }>(
    `SELECT event_seq FROM payments_inbox_delivery INDEXED BY payments_inbox_delivery_lane
     WHERE state = 'pending' AND handler = ? AND lane = ? AND held = 1 ORDER BY due_at, event_seq LIMIT 1`,
    handler,
    lane,
  );
  if (next === undefined) return false;
  connection.run(
    'UPDATE payments_inbox_delivery SET held = 0 WHERE event_seq = ? AND handler = ?',
    next.event_seq,
    handler,
  );
  return true;
}
