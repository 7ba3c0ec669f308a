import type { HandlerCatalog, WorkerRegistration } from '../../inbox/store/inbox-store.js';
import { readCatalog, refreshCatalog } from './catalog.js';
import type { ParameterList, CatalogChange, SqlDatabase, SqlDialect } from './sql-connection.js';
import { toStored } from './stored-text.js';

/** Stores a live worker: its id, lease and handlers. */
export const REGISTER: CatalogChange = {
  name: 'register',
  types: ['uuid', 'bigint', 'json'],
  statements: (dialect, list) => [
    `INSERT INTO ${dialect.table('worker')} (id, lease_ms, handlers, heartbeat_at)
     VALUES ($1, $2, $3, ${dialect.now('store', list)})
     ON CONFLICT (id) DO UPDATE SET lease_ms = excluded.lease_ms, handlers = excluded.handlers,
       heartbeat_at = excluded.heartbeat_at, retired = false`,
    ...refreshCatalog(dialect, list),
  ],
};

/** Removes a worker, and stores when its handlers were last seen. */
export const REMOVE_WORKER: CatalogChange = {
  name: 'remove_worker',
  types: ['uuid'],
  statements: (dialect, list) => [
    storeLastSeen(dialect, list),
    `DELETE FROM ${dialect.table('worker')} WHERE id = $1`,
    ...refreshCatalog(dialect, list),
  ],
};

/** Ends the lease of a worker after as many milliseconds as the second parameter says. A heartbeat then removes the worker. */
export const RETIRE: CatalogChange = {
  name: 'retire',
  types: ['uuid', 'bigint'],
  statements(dialect, list) {
    const now = dialect.now('store', list);
    return [
      storeLastSeen(dialect, list),
      `UPDATE ${dialect.table('worker')} SET retired = true, lease_ms = $2,
         heartbeat_at = CASE WHEN heartbeat_at < ${now} THEN ${now} ELSE heartbeat_at + 1 END WHERE id = $1`,
      ...refreshCatalog(dialect, list),
    ];
  },
};

/** See `InboxStore.register`. */
export async function register(
  database: SqlDatabase,
  { id, leaseMs, handlers }: WorkerRegistration,
): Promise<HandlerCatalog> {
  const declared = handlers.map(({ name, patterns }) => ({
    name: toStored(name),
    patterns: patterns.map(toStored),
  }));
  await database.changeCatalog(REGISTER, [id, Math.round(leaseMs), JSON.stringify(declared)]);
  return readCatalog(database);
}

/** See `InboxStore.retire`. */
export function retire(database: SqlDatabase, workerId: string, graceMs: number): Promise<void> {
  return database.changeCatalog(RETIRE, [workerId, Math.round(graceMs)]);
}

/** A statement that stores the last heartbeat of a worker with its handlers. */
function storeLastSeen(dialect: SqlDialect, list: ParameterList): string {
  const offset = `${dialect.now('wall', list)} - ${dialect.now('store', list)}`;
  return `UPDATE ${dialect.table('handler')} AS h SET last_seen = s.seen FROM (
      SELECT j.value ->> 'name' AS name, ${offset} + w.heartbeat_at AS seen
      FROM ${dialect.table('worker')} w CROSS JOIN ${dialect.elements('w.handlers')} WHERE w.id = $1
    ) s WHERE h.name = s.name AND h.last_seen < s.seen`;
}
