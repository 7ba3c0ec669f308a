import type { SqliteConnection } from '../thread/connection.js';

/** Stops, or restarts, the claims of a handler or of all (`*`). */
export function pause(
  connection: SqliteConnection,
  { handler, paused }: { readonly handler: string; readonly paused: boolean },
): void {
  if (paused) {
    connection.run('INSERT OR IGNORE INTO payments_inbox_pause (handler) VALUES (?)', [handler]);
  } else {
    connection.run('DELETE FROM payments_inbox_pause WHERE handler = ?', [handler]);
  }
}

/** What is paused, in order. */
export function pausedHandlers(connection: SqliteConnection): string[] {
  return connection
    .all<{ handler: string }>('SELECT handler FROM payments_inbox_pause ORDER BY handler')
    .map(({ handler }) => handler);
}

/** Those of the handlers that are not paused, each once. */
export function unpaused(connection: SqliteConnection, handlers: readonly string[]): string[] {
  const paused = connection.fact('paused', () => pausedHandlers(connection));
  if (paused.includes('*')) return [];
  return [...new Set(handlers)].filter((handler) => !paused.includes(handler));
}
