import { COUNT_CAP } from '../../store/stored-event.js';
import type { CappedCount, InboxStats } from '../../store/inbox-store.js';
import type { Times } from '../store-clock.js';
import type { SqliteConnection } from '../thread/connection.js';
import { pausedHandlers } from './catalog.js';

/** Where the deliveries of a state are counted: parts of an index that start with the handler. */
const PARTS = [
  { state: 'dead', index: 'queue', where: ["queue = 'dead'"] },
  {
    state: 'pending',
    index: 'queue',
    where: ["queue = 'due'", "queue = 'suspect'", "queue = 'held'"],
  },
  { state: 'running', index: 'running', where: ["state = 'running'"] },
] as const;

type Part = (typeof PARTS)[number];

/** Reads at most {@link COUNT_CAP} entries of an index for each handler and state. */
export function stats(connection: SqliteConnection, _request: null, { wall }: Times): InboxStats {
  const deliveries = PARTS.flatMap((part) =>
    handlersIn(connection, part.index).flatMap((handler) => {
      const counted = countOf(connection, part, handler);
      return counted.count === 0 ? [] : [{ handler, state: part.state, ...counted }];
    }),
  );
  const oldest = Math.min(...['pending', 'running'].map((state) => oldestOf(connection, state)));
  return {
    deliveries: deliveries.toSorted((a, b) => compare(a.handler, b.handler)),
    unhandled: undelivered(connection, 1),
    stale: undelivered(connection, 2),
    oldestPendingMs: oldest === Infinity ? null : Math.max(0, wall - oldest),
    paused: pausedHandlers(connection),
  };
}

/** When the oldest delivery of that state was received. */
function oldestOf(connection: SqliteConnection, state: string): number {
  const row = connection.get<{ received_at: number }>(
    `SELECT received_at FROM payments_inbox_delivery INDEXED BY payments_inbox_delivery_undone
     WHERE state <> 'done' AND state = ? ORDER BY received_at LIMIT 1`,
    [state],
  );
  return row?.received_at ?? Infinity;
}

/** Looks up the next name again and again, and so reads one entry for each handler. */
function handlersIn(connection: SqliteConnection, index: Part['index']): string[] {
  const names: string[] = [];
  const where = index === 'queue' ? 'queue IS NOT NULL' : "state = 'running'";
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
  { index, where }: Part,
  handler: string,
): CappedCount {
  let count = 0;
  for (const part of where) {
    count += connection.get<{ count: number }>(
      `SELECT count(*) AS count FROM (
         SELECT 1 FROM payments_inbox_delivery INDEXED BY payments_inbox_delivery_${index}
         WHERE ${part} AND handler = ? LIMIT ?)`,
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
