import type { SqliteConnection } from '../thread/connection.js';

/** What the deliveries of one company, handler and ordering key do. */
export interface LaneState {
  /** Whether a new delivery may run at once: none runs, and none is pending and due. */
  readonly free: boolean;
  /**
   * Whether a delivery that is due now is to be held: one of the key runs, or is claimable now. Whoever ends that one
   * releases the next, so that claims read one delivery of a key, not its backlog. A suspect holds nothing up.
   */
  readonly busy: boolean;
}

/** The state of the handler's deliveries with that ordering key. */
export function laneState(
  connection: SqliteConnection,
  handler: string,
  lane: string | null,
  clock: number,
): LaneState {
  if (lane === null) return { free: true, busy: false };
  if (isLaneRunning(connection, handler, lane)) return { free: false, busy: true };
  // Held ones are due, and no suspects. There may be many; of the others, only those that wait for a retry.
  const { crashes } = connection.get<{ crashes: number | null }>(
    `SELECT iif(
       EXISTS (SELECT 1 FROM payments_inbox_delivery INDEXED BY payments_inbox_delivery_lane
         WHERE state = 'pending' AND handler = ?1 AND lane = ?2 AND held = 1),
       0,
       (SELECT min(crashes) FROM payments_inbox_delivery INDEXED BY payments_inbox_delivery_lane
         WHERE state = 'pending' AND handler = ?1 AND lane = ?2 AND held = 0 AND due_at <= ?3)) AS crashes`,
    [handler, lane, clock],
  )!;
  return { free: crashes === null, busy: crashes === 0 };
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
    [handler, lane],
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
    [handler, lane],
  );
  if (next === undefined) return false;
  connection.run(
    'UPDATE payments_inbox_delivery SET held = 0 WHERE event_seq = ? AND handler = ?',
    [next.event_seq, handler],
  );
  return true;
}
