import { pruneActivity } from './sqlite.activity.js';
import type { SqliteConnection } from './sqlite.connection.js';

export interface PruneRequest {
  readonly bodiesMs: number;
  readonly tombstonesMs: number;
  readonly limit: number;
}

/** Forgets at most `limit` events: tombstones past their time first, then bodies, the oldest first. */
export function prune(
  connection: SqliteConnection,
  { bodiesMs, tombstonesMs, limit }: PruneRequest,
  now: number,
): number {
  pruneActivity(connection, now);
  const forgetBefore = now - tombstonesMs;
  const forgotten = connection.run(
    `DELETE FROM payments_inbox_event WHERE seq IN (
       SELECT seq FROM payments_inbox_event INDEXED BY payments_inbox_event_tombstone
       WHERE pruned = 1 AND received_at < ? AND occurred_at < ? ORDER BY received_at LIMIT ?)`,
    forgetBefore,
    forgetBefore,
    limit,
  );
  const finished = connection.all<{ seq: number; known_since: number }>(
    `SELECT seq, max(received_at, occurred_at) AS known_since FROM payments_inbox_event INDEXED BY payments_inbox_event_finished
     WHERE pruned = 0 AND open = 0 AND received_at < ? ORDER BY received_at LIMIT ?`,
    now - bodiesMs,
    limit - forgotten,
  );
  for (const { seq, known_since } of finished) {
    if (known_since < forgetBefore) {
      connection.run('DELETE FROM payments_inbox_event WHERE seq = ?', seq);
    } else {
      connection.run('DELETE FROM payments_inbox_body WHERE event_seq = ?', seq);
      connection.run('DELETE FROM payments_inbox_delivery WHERE event_seq = ?', seq);
      connection.run(
        'UPDATE payments_inbox_event SET pruned = 1, deliveries = 0 WHERE seq = ?',
        seq,
      );
    }
  }
  return forgotten + finished.length;
}
