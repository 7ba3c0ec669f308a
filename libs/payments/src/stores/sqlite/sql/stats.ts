import { capped, COUNT_CAP } from '../../../inbox/store/stored-event.js';
import type { CappedCount, InboxStats } from '../../../inbox/store/inbox-store.js';
import type { SqliteConnection, Times } from '../thread/connection.js';
import { pausedHandlers } from './catalog.js';
import { UNDELIVERED, UNDONE } from './schema.js';

/**
 * For each counted state, the index and the conditions that select its deliveries. The index starts with the handler.
 */
const PARTS = [
  { state: 'dead', index: 'queue', where: ["queue = 'dead'"] },
  {
    state: 'pending',
    index: 'queue',
    where: ["queue = 'due'", "queue = 'suspect'", "queue = 'waiting'"],
  },
  { state: 'running', index: 'running', where: ["state = 'running'"] },
] as const;

type Part = (typeof PARTS)[number];

/** Counts what is stored. Reads at most {@link COUNT_CAP} + 1 index entries for each handler and state. */
export function stats(connection: SqliteConnection, _request: null, { wall }: Times): InboxStats {
  const deliveries = PARTS.flatMap((part) =>
    handlersIn(connection, part.index).flatMap((handler) => {
      const counted = countOf(connection, part, handler);
      return counted.count === 0 ? [] : [{ handler, state: part.state, ...counted }];
    }),
  );
  const oldest = oldestUnfinished(connection);
  return {
    deliveries: deliveries.toSorted((a, b) => compare(a.handler, b.handler)),
    unhandled: undelivered(connection, UNDELIVERED.unhandled),
    stale: undelivered(connection, UNDELIVERED.stale),
    oldestPendingMs: oldest === undefined ? null : Math.max(0, wall - oldest),
    paused: pausedHandlers(connection),
  };
}

/** The time of receipt of the first event with a pending or running delivery: few deliveries run at the same time. */
function oldestUnfinished(connection: SqliteConnection): number | undefined {
  const row = connection.get<{ received_at: number }>(
    `SELECT received_at FROM payments_inbox_event WHERE seq = (
       SELECT min(event_seq) FROM (
         SELECT min(event_seq) AS event_seq FROM payments_inbox_delivery INDEXED BY payments_inbox_delivery_undone
         WHERE ${UNDONE} AND state = 'pending'
         UNION ALL
         SELECT min(event_seq) FROM payments_inbox_delivery INDEXED BY payments_inbox_delivery_running
         WHERE state = 'running'))`,
  );
  return row?.received_at;
}

/** The handlers in an index. Looks up one name after the other, so that it reads one index entry for each handler. */
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

function undelivered(connection: SqliteConnection, reason: number): CappedCount {
  const { count } = connection.get<{ count: number }>(
    `SELECT count(*) AS count FROM (
       SELECT 1 FROM payments_inbox_event INDEXED BY payments_inbox_event_undelivered
       WHERE undelivered > 0 AND undelivered = ? LIMIT ${COUNT_CAP + 1})`,
    [reason],
  )!;
  return capped(count);
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** Converts the counts of the thread. */
export function toStats({
  deliveries,
  unhandled,
  stale,
  oldestPendingMs,
  paused,
}: InboxStats): InboxStats {
  return {
    deliveries: Array.from(deliveries, (counted) => ({ ...counted })),
    unhandled: { ...unhandled },
    stale: { ...stale },
    oldestPendingMs,
    paused: Array.from(paused),
  };
}
