import { MAX_DISORDER_MS } from '../../../inbox/store/stored-event.js';
import type { SqliteConnection, Times } from '../thread/connection.js';

/** How many events one call reads at most. */
const SLICE = 1000;

export interface PruneRequest {
  readonly bodiesMs: number;
  readonly tombstonesMs: number;
  readonly limit: number;
  /** `lastKept` of the previous call; 0 for the first call. */
  readonly lastKept: number;
}

export interface Pruned {
  readonly changed: number;
  /** Whether all old events have been read, and the next slice of the kept events. */
  readonly done: boolean;
  /** The kept event that was read last. */
  readonly lastKept: number;
}

/**
 * Deletes expectations and expired tombstones, then the bodies of old events, then those of kept events that have finished
 * meanwhile; at most `limit` in one call. It reads the events in the order of their numbers, each once, and adds those that
 * it cannot prune to the kept events.
 */
export function prune(
  connection: SqliteConnection,
  { bodiesMs, tombstonesMs, limit, lastKept }: PruneRequest,
  { wall }: Times,
): Pruned {
  const expired = wall - tombstonesMs;
  const ended = deleteExpectations(connection, expired, limit);
  const deleted = ended + deleteTombstones(connection, expired, limit - ended);
  if (deleted > 0) return { changed: deleted, done: false, lastKept };
  const old = wall - bodiesMs;
  const passed = passEvents(connection, { old, expired, limit }, wall);
  if (passed !== null) return { changed: passed, done: false, lastKept };
  // CROSS JOIN: SQLite reads the kept events first, and not all events.
  const kept = readEvents(
    connection,
    'payments_inbox_kept k CROSS JOIN payments_inbox_event e ON e.seq = k.event',
    'k.event',
    [old, lastKept],
  );
  const chosen = kept.filter(({ finished }) => finished === 1).slice(0, limit);
  for (const event of chosen) {
    connection.run('DELETE FROM payments_inbox_kept WHERE event = ?', [event.seq]);
    pruneEvent(connection, event, expired);
  }
  const last = chosen.length === limit ? chosen.at(-1) : kept[SLICE - 1];
  return { changed: chosen.length, done: true, lastKept: last?.seq ?? 0 };
}

/**
 * Prunes the next old events, and keeps those that are not finished. Returns how many it pruned; `null` if the next event is
 * not old. An event from the future is kept too: the clock was wrong at its receipt.
 */
function passEvents(
  connection: SqliteConnection,
  { old, expired, limit }: { old: number; expired: number; limit: number },
  wall: number,
): number | null {
  const { pruned_to } = connection.get<{ pruned_to: number }>(
    'SELECT pruned_to FROM payments_inbox_meta',
  )!;
  let last = pruned_to;
  let changed = 0;
  for (const event of readEvents(connection, 'payments_inbox_event e', 'e.seq', [old, last])) {
    const { seq, received_at, finished } = event;
    const isYoung = received_at >= old && received_at <= wall + MAX_DISORDER_MS;
    if (isYoung || changed === limit) break;
    if (finished === 1) {
      pruneEvent(connection, event, expired);
      changed += 1;
    } else {
      connection.run('INSERT INTO payments_inbox_kept VALUES (?)', [seq]);
    }
    last = seq;
  }
  if (last === pruned_to) return null;
  connection.run('UPDATE payments_inbox_meta SET pruned_to = ?', [last]);
  return changed;
}

function deleteExpectations(connection: SqliteConnection, before: number, limit: number): number {
  return connection.run(
    `DELETE FROM payments_inbox_expectation WHERE seq IN (
       SELECT seq FROM payments_inbox_expectation INDEXED BY payments_inbox_expectation_state
       WHERE state IN ('fulfilled', 'cancelled') AND created_at < ?1 AND coalesce(fulfilled_at, ?1 - 1) < ?1 LIMIT ?2)`,
    [before, limit],
  );
}

function deleteTombstones(connection: SqliteConnection, before: number, limit: number): number {
  return connection.run(
    `DELETE FROM payments_inbox_event WHERE seq IN (
       SELECT seq FROM payments_inbox_event INDEXED BY payments_inbox_event_tombstone
       WHERE pruned = 1 AND received_at < ?1 AND occurred_at < ?1 ORDER BY received_at LIMIT ?2)`,
    [before, limit],
  );
}

interface UnprunedRow {
  readonly seq: number;
  readonly received_at: number;
  /** The later of `received_at` and `occurred_at`: an event from the future is kept longer. */
  readonly known_since: number;
  /** Whether the event is old, and all its deliveries are done or skipped. */
  readonly finished: 0 | 1;
}

/** Reads the next events after a number. */
function readEvents(
  connection: SqliteConnection,
  tables: string,
  number: string,
  [old, after]: readonly [old: number, after: number],
): UnprunedRow[] {
  return connection.all<UnprunedRow>(
    `SELECT e.seq, e.received_at, max(e.received_at, e.occurred_at) AS known_since,
       iif(e.received_at < ?1, NOT EXISTS (
         SELECT 1 FROM payments_inbox_delivery
         WHERE event = e.seq AND state NOT IN ('done', 'skipped')), 0) AS finished
     FROM ${tables} WHERE ${number} > ?2 ORDER BY ${number} LIMIT ${SLICE}`,
    [old, after],
  );
}

/** Replaces an event with a tombstone, or deletes it if a tombstone would have expired. */
function pruneEvent(
  connection: SqliteConnection,
  { seq, known_since }: UnprunedRow,
  expired: number,
): void {
  if (known_since < expired) {
    connection.run('DELETE FROM payments_inbox_event WHERE seq = ?', [seq]);
    return;
  }
  connection.run('DELETE FROM payments_inbox_body WHERE event = ?', [seq]);
  connection.run('DELETE FROM payments_inbox_delivery WHERE event = ?', [seq]);
  connection.run(
    `UPDATE payments_inbox_event SET pruned = 1, unhandled = 0, reference = NULL, amount = NULL,
       currency = NULL WHERE seq = ?`,
    [seq],
  );
}
