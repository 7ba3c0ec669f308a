import type { DeliveryState, EventState, InboxStats } from '../inbox-store.js';
import type { SqliteConnection } from './sqlite.connection.js';
import { pausedHandlers } from './sqlite.pause.js';

interface CountRow {
  readonly handler: string;
  readonly state: EventState;
  readonly count: number;
}

/** Reads a few rows, whatever the store holds: the counts are kept by triggers. */
export function stats(connection: SqliteConnection, _request: object, now: number): InboxStats {
  const counts = connection.all<CountRow>(
    'SELECT handler, state, count FROM payments_inbox_count WHERE count > 0 ORDER BY handler, state',
  );
  const oldest = connection.get<{ received_at: number }>(
    `SELECT received_at FROM payments_inbox_delivery INDEXED BY payments_inbox_delivery_unfinished
     WHERE due_at IS NOT NULL ORDER BY received_at LIMIT 1`,
  );
  const countOf = (reason: EventState) => counts.find(({ state }) => state === reason)?.count ?? 0;
  return {
    // Events without a delivery are counted under no handler.
    deliveries: counts
      .filter(({ handler }) => handler !== '')
      .map(({ handler, state, count }) => ({ handler, state: state as DeliveryState, count })),
    unhandled: countOf('unhandled'),
    stale: countOf('stale'),
    oldestPendingMs: oldest === undefined ? null : Math.max(0, now - oldest.received_at),
    paused: pausedHandlers(connection),
  };
}
