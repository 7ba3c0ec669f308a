import type { Times } from '../store-clock.js';
import type { SqliteConnection } from '../thread/connection.js';
import { pruneActivity } from './activity.js';
import { UNDELIVERED } from './schema.js';

/** Events that one call looks at: old events that are not finished are looked at again with each prune. */
const SLICE = 1000;

export interface PruneRequest {
  readonly bodiesMs: number;
  readonly tombstonesMs: number;
  readonly limit: number;
  /** `next` of the call before; `null` for the first. */
  readonly after: PruneCursor | null;
}

/** The last event that was looked at. */
export interface PruneCursor {
  readonly receivedAt: number;
  readonly seq: number;
}

export interface Pruned {
  readonly changed: number;
  /** Whether all was looked at. */
  readonly done: boolean;
  /** Where to go on. */
  readonly next: PruneCursor | null;
}

/** Deletes from at most `limit` events: tombstones past their time first, then bodies, the oldest first. */
export function prune(
  connection: SqliteConnection,
  { bodiesMs, tombstonesMs, limit, after }: PruneRequest,
  times: Times,
): Pruned {
  const forgetBefore = times.wall - tombstonesMs;
  if (after === null) {
    pruneActivity(connection, times);
    const forgotten = forgetTombstones(connection, forgetBefore, limit);
    if (forgotten === limit) return { changed: forgotten, done: false, next: null };
    // The bodies are for the next call.
    if (forgotten > 0) return { changed: forgotten, done: false, next: FROM_THE_FIRST };
  }
  let next = after ?? FROM_THE_FIRST;
  const events = wholeEvents(connection, times.wall - bodiesMs, next);
  let changed = 0;
  for (const { seq, received_at, known_since, settled } of events) {
    if (changed === limit) return { changed, done: false, next };
    next = { receivedAt: received_at, seq };
    if (settled === 0) continue;
    if (known_since < forgetBefore) deleteEvent(connection, seq);
    else makeTombstone(connection, seq);
    changed += 1;
  }
  return { changed, done: events.length < SLICE, next };
}

const FROM_THE_FIRST: PruneCursor = { receivedAt: Number.MIN_SAFE_INTEGER, seq: 0 };

function forgetTombstones(connection: SqliteConnection, before: number, limit: number): number {
  return connection.run(
    `DELETE FROM payments_inbox_event WHERE seq IN (
       SELECT seq FROM payments_inbox_event INDEXED BY payments_inbox_event_pruned
       WHERE pruned = 1 AND received_at < ?1 AND occurred_at < ?1 ORDER BY received_at LIMIT ?2)`,
    [before, limit],
  );
}

interface WholeRow {
  readonly seq: number;
  readonly received_at: number;
  /** When a copy of it could be older than the tombstone: an event from the future is remembered longer. */
  readonly known_since: number;
  readonly settled: 0 | 1;
}

function wholeEvents(
  connection: SqliteConnection,
  before: number,
  { receivedAt, seq }: PruneCursor,
): WholeRow[] {
  return connection.all<WholeRow>(
    `SELECT seq, received_at, max(received_at, occurred_at) AS known_since, NOT EXISTS (
       SELECT 1 FROM payments_inbox_delivery
       WHERE event_seq = seq AND state NOT IN ('done', 'skipped')) AS settled
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
  connection.run(
    `INSERT INTO payments_inbox_handled (event_seq, handler, ordering, occurred_at)
     SELECT event_seq, handler, ordering, occurred_at FROM payments_inbox_delivery
     WHERE event_seq = ? AND state = 'done' AND ordering IS NOT NULL`,
    [seq],
  );
  connection.run('DELETE FROM payments_inbox_body WHERE event_seq = ?', [seq]);
  connection.run('DELETE FROM payments_inbox_delivery WHERE event_seq = ?', [seq]);
  connection.run(
    `UPDATE payments_inbox_event SET pruned = 1, undelivered = ${UNDELIVERED.none} WHERE seq = ?`,
    [seq],
  );
}
