import { PaymentsError } from '../../errors/payments-error.js';
import type {
  HandlerCatalog,
  HandlerPause,
  Lease,
  PauseFacts,
  WorkerRegistration,
} from '../../inbox/store/inbox-store.js';
import { fromStored, toStored } from './sql-connection.js';
import type { CatalogChange, SqlConnection, SqlDatabase, SqlDialect } from './sql-connection.js';

export const REGISTER: CatalogChange = {
  name: 'register',
  types: ['uuid', 'bigint', 'json'],
  statements: (dialect) => [
    `INSERT INTO ${dialect.table('worker')} (id, lease_ms, handlers, heartbeat_at)
     VALUES ($1, $2, $3, ${dialect.now('store')})
     ON CONFLICT (id) DO UPDATE SET lease_ms = excluded.lease_ms, handlers = excluded.handlers,
       heartbeat_at = excluded.heartbeat_at, retired = false`,
    ...refreshCatalog(dialect),
  ],
};

export const REMOVE_WORKER: CatalogChange = {
  name: 'remove_worker',
  types: ['uuid'],
  statements: (dialect) => [
    storeLastSeen(dialect),
    `DELETE FROM ${dialect.table('worker')} WHERE id = $1`,
    ...refreshCatalog(dialect),
  ],
};

/**
 * Retires the worker `$1`. `$2` is the grace period in milliseconds. After the grace period, the next heartbeat of any
 * worker removes the retired worker.
 */
export const RETIRE: CatalogChange = {
  name: 'retire',
  types: ['uuid', 'bigint'],
  statements(dialect) {
    const now = dialect.now('store');
    return [
      storeLastSeen(dialect),
      `UPDATE ${dialect.table('worker')} SET retired = true, lease_ms = $2,
         heartbeat_at = CASE WHEN heartbeat_at < ${now} THEN ${now} ELSE heartbeat_at + 1 END WHERE id = $1`,
      ...refreshCatalog(dialect),
    ];
  },
};

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

export function retire(database: SqlDatabase, workerId: string, graceMs: number): Promise<void> {
  return database.changeCatalog(RETIRE, [workerId, Math.round(graceMs)]);
}

function storeLastSeen(dialect: SqlDialect): string {
  const offset = `${dialect.now('wall')} - ${dialect.now('store')}`;
  return `UPDATE ${dialect.table('handler')} AS h SET last_seen = s.seen FROM (
      SELECT j.value ->> 'name' AS name, ${offset} + w.heartbeat_at AS seen
      FROM ${dialect.table('worker')} w CROSS JOIN ${dialect.elements('w.handlers')} WHERE w.id = $1
    ) s WHERE h.name = s.name AND h.last_seen < s.seen`;
}

/** The error of a commit whose worker does not have the lease any more. */
export function leaseLost({ id, company, handler }: Lease): PaymentsError {
  return new PaymentsError(
    'lease_lost',
    `The lease on the delivery of event ${id} (company ${company}) to ${handler} was lost before the commit, because ` +
      'its worker was declared dead or the delivery was already settled. Nothing was committed, and the delivery runs ' +
      'again unless it was settled. Raise "worker.leaseMs", or find the code that blocks the event loop.',
  );
}

interface CatalogRow {
  readonly version: number;
  /** The name of the handler. An empty catalog has one row, whose name is `null`. */
  readonly name: string | null;
  readonly patterns: string;
  readonly first_seen: number;
  /** The last heartbeat of the workers that were removed or retired, by the wall clock. */
  readonly last_seen: number;
  /** The last heartbeat of the live workers, by the store clock; `null` if there is no live worker. */
  readonly heartbeat_at: number | null;
}

export async function readCatalog(connection: SqlConnection): Promise<HandlerCatalog> {
  const { dialect } = connection;
  const rows = await connection.all<CatalogRow>(
    `SELECT m.catalog_version AS version, h.name, h.patterns, h.first_seen, h.last_seen, (
       SELECT max(w.heartbeat_at) FROM ${dialect.table('worker')} w CROSS JOIN ${dialect.elements('w.handlers')}
       WHERE NOT w.retired AND j.value ->> 'name' = h.name) AS heartbeat_at
     FROM ${dialect.table('meta')} m LEFT JOIN ${dialect.table('handler')} h ON true ORDER BY h.name`,
  );
  return {
    version: rows[0]!.version,
    handlers: rows
      .filter(({ name }) => name !== null)
      .map((row) => ({
        name: fromStored(row.name!),
        patterns: (JSON.parse(row.patterns) as string[]).map(fromStored),
        firstSeenAt: new Date(row.first_seen),
        lastSeenAt: new Date(
          row.heartbeat_at === null ? row.last_seen : row.heartbeat_at + dialect.wallOffsetMs,
        ),
      })),
  };
}

/**
 * SQL: the handlers that live workers have registered, each with the patterns from all these registrations as a JSON
 * array.
 */
const livePatterns = (dialect: SqlDialect): string => `(
  SELECT p.name, COALESCE(${dialect.jsonArray('p.pattern::json')}, '[]')::text AS patterns FROM (
    SELECT DISTINCT h.value ->> 'name' AS name, j.value::text AS pattern
    FROM ${dialect.table('worker')} w CROSS JOIN ${dialect.elements('w.handlers', 'h')}
      LEFT JOIN ${dialect.elements("h.value -> 'patterns'")} ON true
    WHERE NOT w.retired ORDER BY 1, 2
  ) p GROUP BY p.name)`;

/** Updates the catalog after a change of the live workers. A handler without a live worker keeps its last patterns. */
function refreshCatalog(dialect: SqlDialect): string[] {
  const now = dialect.now('wall');
  const handler = dialect.table('handler');
  return [
    `UPDATE ${dialect.table('meta')} SET catalog_version = catalog_version + 1 WHERE EXISTS (
       SELECT 1 FROM ${livePatterns(dialect)} l LEFT JOIN ${handler} k ON k.name = l.name
       WHERE k.patterns IS DISTINCT FROM l.patterns)`,
    `INSERT INTO ${handler} (name, patterns, first_seen, last_seen)
     SELECT l.name, l.patterns, ${now}, ${now} FROM ${livePatterns(dialect)} l WHERE true
     ON CONFLICT (name) DO UPDATE SET patterns = excluded.patterns`,
  ];
}

/**
 * Removes a handler from the catalog, unless a live worker has registered it. A worker whose heartbeat is late is still
 * live.
 */
export const FORGET_HANDLER: CatalogChange = {
  name: 'forget_handler',
  types: ['text'],
  statements(dialect) {
    const isFree = `NOT EXISTS (
      SELECT 1 FROM ${dialect.table('worker')} w CROSS JOIN ${dialect.elements('w.handlers')}
      WHERE NOT w.retired AND j.value ->> 'name' = $1)`;
    const handler = dialect.table('handler');
    return [
      `UPDATE ${dialect.table('meta')} SET catalog_version = catalog_version + 1
       WHERE EXISTS (SELECT 1 FROM ${handler} WHERE name = $1) AND ${isFree}`,
      `DELETE FROM ${handler} WHERE name = $1 AND ${isFree}`,
    ];
  },
};

export async function forgetHandler(database: SqlDatabase, handler: string): Promise<boolean> {
  const name = toStored(handler);
  await database.changeCatalog(FORGET_HANDLER, [name]);
  const isKnown = `SELECT 1 AS found FROM ${database.dialect.table('handler')} WHERE name = $1`;
  return (await database.get(isKnown, [name])) === undefined;
}

export async function pauseHandler(
  connection: SqlConnection,
  handler: string,
  paused: boolean,
  facts: PauseFacts = {},
): Promise<void> {
  const { dialect } = connection;
  const pause = dialect.table('pause');
  const name = toStored(handler);
  if (!paused) {
    await connection.run(`DELETE FROM ${pause} WHERE handler = $1`, [name]);
    return;
  }
  const { who = null, reason = null, until = null } = facts;
  const stored = JSON.stringify({ handler, who, reason, until });
  await connection.run(
    `INSERT INTO ${pause} (handler, facts, until_at, paused_at) VALUES ($1, $2, $3::bigint, ${dialect.now('wall')})
     ON CONFLICT (handler) DO UPDATE
     SET facts = excluded.facts, until_at = excluded.until_at, paused_at = excluded.paused_at`,
    [name, stored, until && until.getTime()],
  );
}

/** Ends the pauses whose time has passed. Returns whether it ended a pause. */
export async function endPauses(connection: SqlConnection): Promise<boolean> {
  const { dialect } = connection;
  const ended = `DELETE FROM ${dialect.table('pause')} WHERE until_at <= ${dialect.now('wall')}`;
  return (await connection.run(ended)) > 0;
}

/** @param facts the JSON text that {@link pauseHandler} stored in the column `facts` */
export function toPause(facts: string, pausedAt: number): HandlerPause {
  const { until, ...rest } = JSON.parse(facts) as Omit<HandlerPause, 'until'> & {
    until: string | null;
  };
  return { ...rest, pausedAt: new Date(pausedAt), until: until === null ? null : new Date(until) };
}
