import { COUNT_CAP } from '../../inbox-records.js';
import type { CappedCount, InboxStats } from '../../inbox-store.js';
import type { Times } from '../store-clock.js';
import type { SqliteConnection } from '../thread/connection.js';
import { pausedHandlers } from './pause.js';

/** A part of an index that starts with the handler. */
type Part = readonly [index: string, where: string];

const PARTS = {
  pending: [
    ['claim', "state = 'pending' AND held = 0 AND crashes = 0"],
    ['suspect', "state = 'pending' AND crashes > 0"],
    ['held', 'held = 1'],
  ],
  running: [['running', "state = 'running'"]],
  dead: [['dead', "state = 'dead'"]],
} as const satisfies Record<string, readonly Part[]>;

const STATES = ['dead', 'pending', 'running'] as const;

/** Reads at most {@link COUNT_CAP} entries of an index for each handler and state. */
export function stats(connection: SqliteConnection, _request: null, { wall }: Times): InboxStats {
  const deliveries = STATES.flatMap((state) => {
    const parts: readonly Part[] = PARTS[state];
    const handlers = new Set(parts.flatMap((part) => handlersIn(connection, part)));
    return [...handlers].map((handler) => ({
      handler,
      state,
      ...countOf(connection, parts, handler),
    }));
  });
  const oldest = connection.get<{ received_at: number }>(
    `SELECT received_at FROM payments_inbox_delivery INDEXED BY payments_inbox_delivery_unfinished
     WHERE state IN ('pending', 'running') ORDER BY received_at LIMIT 1`,
  );
  return {
    deliveries: deliveries.toSorted((a, b) => compare(a.handler, b.handler)),
    unhandled: undelivered(connection, 1),
    stale: undelivered(connection, 2),
    oldestPendingMs: oldest === undefined ? null : Math.max(0, wall - oldest.received_at),
    paused: pausedHandlers(connection),
  };
}

/** Looks up the next name again and again, and so reads one entry for each handler. */
function handlersIn(connection: SqliteConnection, [index, where]: Part): string[] {
  const names: string[] = [];
  for (let last = ''; ;) {
    const row = connection.get<{ handler: string }>(
      `SELECT handler FROM payments_inbox_delivery INDEXED BY payments_inbox_delivery_${index}
       WHERE ${where} AND handler > ? ORDER BY handler LIMIT 1`,
      [last],
    );
    if (row === undefined) return names;
    names.push(row.handler);
    last = row.handler;
  }
}

function countOf(
  connection: SqliteConnection,
  parts: readonly Part[],
  handler: string,
): CappedCount {
  let count = 0;
  for (const [index, where] of parts) {
    count += connection.get<{ count: number }>(
      `SELECT count(*) AS count FROM (
         SELECT 1 FROM payments_inbox_delivery INDEXED BY payments_inbox_delivery_${index}
         WHERE ${where} AND handler = ? LIMIT ?)`,
      [handler, COUNT_CAP + 1 - count],
    )!.count;
  }
  return capped(count);
}

function undelivered(connection: SqliteConnection, reason: 1 | 2): CappedCount {
  const { count } = connection.get<{ count: number }>(
    `SELECT count(*) AS count FROM (
       SELECT 1 FROM payments_inbox_event INDEXED BY payments_inbox_event_undelivered
       WHERE undelivered > 0 AND undelivered = ? LIMIT ${COUNT_CAP + 1})`,
    [reason],
  )!;
  return capped(count);
}

function capped(count: number): CappedCount {
  return { count: Math.min(count, COUNT_CAP), more: count > COUNT_CAP };
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
