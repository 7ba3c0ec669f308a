import type { HandlerCatalog, HandlerDeclaration } from '../../../inbox/store/inbox-store.js';
import type { SqliteConnection, Times } from '../thread/connection.js';

interface HandlerRow {
  readonly name: string;
  readonly patterns: string;
  readonly first_seen_at: number;
  readonly last_seen_at: number;
}

/** The handlers that any worker registered and that were not removed, by name. */
export function catalog(connection: SqliteConnection): HandlerCatalog {
  return {
    version: catalogVersion(connection),
    handlers: allHandlers(connection).map((row) => ({
      name: row.name,
      patterns: JSON.parse(row.patterns) as string[],
      firstSeenAt: new Date(row.first_seen_at),
      lastSeenAt: new Date(row.last_seen_at),
    })),
  };
}

/** See {@link HandlerCatalog.version}. */
export function catalogVersion(connection: SqliteConnection): number {
  return connection.cached('catalog', () => {
    const sql = 'SELECT catalog_version AS version FROM payments_inbox_meta';
    return connection.get<{ version: number }>(sql)!.version;
  });
}

/**
 * Updates the catalog after a change of the live workers. A handler that no live worker has keeps its last patterns.
 */
export function refreshCatalog(connection: SqliteConnection, { wall }: Times): void {
  const known = new Map(allHandlers(connection).map((row) => [row.name, row.patterns]));
  let changed = false;
  for (const [name, patterns] of livePatterns(connection)) {
    changed ||= known.get(name) !== patterns;
    connection.run(
      `INSERT INTO payments_inbox_handler VALUES (?1, ?2, ?3, ?3)
       ON CONFLICT DO UPDATE SET patterns = ?2, last_seen_at = ?3`,
      [name, patterns, wall],
    );
  }
  if (changed) newVersion(connection);
}

/** How many deliveries one call of {@link forgetHandler} skips. */
export const FORGET_SLICE = 500;

/**
 * Removes a handler that no live worker has, and skips at most {@link FORGET_SLICE} of its deliveries. Returns how many
 * it skipped, or `null` if a live worker has the handler.
 */
export function forgetHandler(
  connection: SqliteConnection,
  { handler }: { readonly handler: string },
  { wall }: Times,
): number | null {
  if (livePatterns(connection).has(handler)) return null;
  const removed = connection.run('DELETE FROM payments_inbox_handler WHERE name = ?', [handler]);
  if (removed > 0) newVersion(connection);
  let skipped = 0;
  for (const queue of QUEUES) {
    skipped += connection.run(
      `UPDATE payments_inbox_delivery SET state = 'skipped', queue = NULL, crashes = 0, due_at = NULL, finished_at = ?
       WHERE (event, handler) IN (
         SELECT event, handler FROM payments_inbox_delivery INDEXED BY payments_inbox_delivery_queue
         WHERE handler = ? AND queue = ? LIMIT ?)`,
      [wall, handler, queue, FORGET_SLICE - skipped],
    );
  }
  return skipped;
}

/**
 * The queues of a handler. The waiting deliveries are skipped first: if the process ends between two slices, each
 * delivery that still waits has the delivery that it waits for.
 */
const QUEUES = ['waiting', 'due', 'suspect', 'dead'] as const;

function allHandlers(connection: SqliteConnection): HandlerRow[] {
  return connection.all<HandlerRow>(
    'SELECT name, patterns, first_seen_at, last_seen_at FROM payments_inbox_handler ORDER BY name',
  );
}

/** The handlers of live workers, each with the patterns of all live workers, as a JSON array. */
function livePatterns(connection: SqliteConnection): Map<string, string> {
  const patterns = new Map<string, Set<string>>();
  const workers = connection.all<{ handlers: string }>(
    'SELECT handlers FROM payments_inbox_worker WHERE retired = 0',
  );
  for (const worker of workers) {
    for (const handler of JSON.parse(worker.handlers) as HandlerDeclaration[]) {
      const all = patterns.get(handler.name) ?? new Set();
      patterns.set(handler.name, all);
      for (const pattern of handler.patterns) all.add(pattern);
    }
  }
  return new Map(
    [...patterns].map(([name, all]) => [name, JSON.stringify([...all].toSorted())] as const),
  );
}

function newVersion(connection: SqliteConnection): void {
  connection.run('UPDATE payments_inbox_meta SET catalog_version = catalog_version + 1');
}

/** Stops or restarts the claims of a handler, or of all handlers (`*`). */
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

/** The names of paused handlers, sorted; `*` among them if all handlers are paused. */
function pausedHandlers(connection: SqliteConnection): string[] {
  return connection
    .all<{ handler: string }>('SELECT handler FROM payments_inbox_pause ORDER BY handler')
    .map(({ handler }) => handler);
}

/** Removes paused handlers and repeated names. */
export function unpaused(connection: SqliteConnection, handlers: readonly string[]): string[] {
  const paused = connection.cached('paused', () => pausedHandlers(connection));
  if (paused.includes('*')) return [];
  return [...new Set(handlers)].filter((handler) => !paused.includes(handler));
}
