import type { SqliteConnection } from './sqlite.connection.js';

/** Stops, or starts again, the claims of a handler or of all (`*`). */
export function pause(
  connection: SqliteConnection,
  { handler, paused }: { readonly handler: string; readonly paused: boolean },
  now: number,
): void {
  if (paused) {
    connection.run('INSERT OR IGNORE INTO payments_inbox_handler VALUES (?, ?)', handler, now);
  } else {
    connection.run('DELETE FROM payments_inbox_handler WHERE handler = ?', handler);
  }
}

/** What is paused, in order. */
export function pausedHandlers(connection: SqliteConnection): string[] {
  return connection
    .all<{ handler: string }>('SELECT handler FROM payments_inbox_handler ORDER BY handler')
    .map(({ handler }) => handler);
}
