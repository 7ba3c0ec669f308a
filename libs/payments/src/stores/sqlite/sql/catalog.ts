import type { SqliteConnection } from '../thread/connection.js';

/** See `HandlerCatalog.version`. */
export function catalogVersion(connection: SqliteConnection): number {
  return connection.cached('catalog', () => {
    const sql = 'SELECT catalog_version AS version FROM payments_inbox_meta';
    return connection.get<{ version: number }>(sql)!.version;
  });
}

/** The names of paused handlers; `*` among them if all handlers are paused. */
function pausedHandlers(connection: SqliteConnection): string[] {
  return connection
    .all<{ handler: string }>('SELECT handler FROM payments_inbox_pause')
    .map(({ handler }) => handler);
}

/** Removes paused handlers and repeated names. */
export function unpaused(connection: SqliteConnection, handlers: readonly string[]): string[] {
  const paused = connection.cached('paused', () => pausedHandlers(connection));
  if (paused.includes('*')) return [];
  return [...new Set(handlers)].filter((handler) => !paused.includes(handler));
}
