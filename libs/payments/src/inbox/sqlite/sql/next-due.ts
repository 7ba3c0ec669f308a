import type { Times } from '../store-clock.js';
import type { SqliteConnection } from '../thread/connection.js';
import { unpaused } from './pause.js';

/** Milliseconds until the first delivery of these handlers becomes claimable; `null` if there is none. */
export function nextDue(
  connection: SqliteConnection,
  { handlers }: { readonly handlers: readonly string[] },
  { clock }: Times,
): number | null {
  const dueTimes = unpaused(connection, handlers).flatMap((handler) => {
    const row = connection.get<{ due_at: number }>(
      `SELECT due_at FROM payments_inbox_delivery INDEXED BY payments_inbox_delivery_queue
       WHERE handler = ? AND queue = 'due' ORDER BY due_at LIMIT 1`,
      [handler],
    );
    return row === undefined ? [] : [row.due_at];
  });
  return dueTimes.length === 0 ? null : Math.min(...dueTimes) - clock;
}
