import type { SqliteConnection, Times } from '../thread/connection.js';
import { pruneExpectations } from './expectations.js';
import { UNDELIVERED } from './schema.js';

/** How many events one call reads at most. Each prune reads old events again that still have unfinished deliveries. */
const SLICE = 1000;

export interface PruneRequest {
  readonly bodiesMs: number;
  readonly tombstonesMs: number;
  readonly limit: number;
  /** `next` of the previous call; `null` for the first call. */
  readonly after: PruneCursor | null;
}

/** The position of the last event that a call has read. */
export interface PruneCursor {
  readonly receivedAt: number;
  readonly seq: number;
}

export interface Pruned {
  readonly changed: number;
  /** Whether all old events have been read. */
  readonly done: boolean;
  /** `after` of the next call. */
  readonly next: PruneCursor | null;
}

/** Deletes expired tombstones, then the bodies of old events, the oldest first; at most `limit` in one call. */
export function prune(
  connection: SqliteConnection,
  { bodiesMs, tombstonesMs, limit, after }: PruneRequest,
  times: Times,
): Pruned {
  const deleteBefore = times.wall - tombstonesMs;
  if (after === null) {
    const ended = pruneExpectations(connection, deleteBefore, limit);
    const deleted = ended + deleteTombstones(connection, deleteBefore, limit - ended);
    if (deleted === limit) return { changed: deleted, done: false, next: null };
    // The next call deletes the bodies.
    if (deleted > 0) return { changed: deleted, done: false, next: START };
  }
  let next = after ?? START;
  const events = unprunedEvents(connection, times.wall - bodiesMs, next);
  let changed = 0;
  for (const { seq, received_at, known_since, finished } of events) {
    if (changed === limit) return { changed, done: false, next };
    next = { receivedAt: received_at, seq };
    if (finished === 0) continue;
    if (known_since < deleteBefore) deleteEvent(connection, seq);
    else makeTombstone(connection, seq);
    changed += 1;
  }
  return { changed, done: events.length < SLICE, next };
}

const START: PruneCursor = { receivedAt: Number.MIN_SAFE_INTEGER, seq: 0 };

function deleteTombstones(connection: SqliteConnection, before: number, limit: number): number {
  return connection.run(
    `DELETE FROM payments_inbox_event WHERE seq IN (
       SELECT seq FROM payments_inbox_event INDEXED BY payments_inbox_event_pruned
       WHERE pruned = 1 AND received_at < ?1 AND occurred_at < ?1 ORDER BY received_at LIMIT ?2)`,
    [before, limit],
  );
}

interface UnprunedRow {
  readonly seq: number;
  readonly received_at: number;
  /** The later of `received_at` and `occurred_at`: an event from the future is kept longer. */
  readonly known_since: number;
  /** Whether all deliveries are done or skipped. */
  readonly finished: 0 | 1;
}

function unprunedEvents(
  connection: SqliteConnection,
  before: number,
  { receivedAt, seq }: PruneCursor,
): UnprunedRow[] {
  return connection.all<UnprunedRow>(
    `SELECT seq, received_at, max(received_at, occurred_at) AS known_since, NOT EXISTS (
       SELECT 1 FROM payments_inbox_delivery
       WHERE event_seq = seq AND state NOT IN ('done', 'skipped')) AS finished
     FROM payments_inbox_event INDEXED BY payments_inbox_event_pruned
     WHERE pruned = 0 AND received_at < ?1 AND received_at >= ?2 AND (received_at, seq) > (?2, ?3)
     ORDER BY received_at, seq LIMIT ${SLICE}`,
    [before, receivedAt, seq],
  );
}

function deleteEvent(connection: SqliteConnection, seq: number): void {
  connection.run('DELETE FROM payments_inbox_event WHERE seq = ?', [seq]);
}

function makeTombstone(connection: SqliteConnection, seq: number): void {
  connection.run('DELETE FROM payments_inbox_body WHERE event_seq = ?', [seq]);
  connection.run('DELETE FROM payments_inbox_delivery WHERE event_seq = ?', [seq]);
  connection.run(
    `UPDATE payments_inbox_event SET pruned = 1, undelivered = ${UNDELIVERED.none}, reference = NULL, amount = NULL,
       currency = NULL WHERE seq = ?`,
    [seq],
  );
}
