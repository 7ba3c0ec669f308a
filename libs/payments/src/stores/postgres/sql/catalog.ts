import type { HandlerCatalog } from '../../../inbox/store/inbox-store.js';
import type { ConnectionSource } from '../connection/connection-source.js';
import type { ResultRow } from '../connection/database-connection.js';
import { BY_INDEX, NOW_MS } from './schema.js';
import { fromStored, toStored } from '../../sql/stored-text.js';
import { toDate } from './stored-rows.js';

/** How many deliveries of a removed handler one statement skips at most. */
const SKIPPED_AT_ONCE = 5000;

/** Returns the handlers that the database knows. */
export async function readCatalog(
  source: ConnectionSource,
  schema: string,
): Promise<HandlerCatalog> {
  return toCatalog(await source.query(`SELECT * FROM ${schema}.read_catalog()`));
}

/** Removes a handler and skips its deliveries; `null` if a live worker has it. */
export async function forgetHandler(
  source: ConnectionSource,
  schema: string,
  handler: string,
): Promise<number | null> {
  const name = toStored(handler);
  const [row] = await source.query(`SELECT ${schema}.forget_handler($1) AS forgotten`, [name]);
  if (row!['forgotten'] !== 't') return null;
  let skipped = 0;
  for (;;) {
    const text = `SELECT ${schema}.skip_all($1, $2) AS skipped`;
    const [slice] = await source.query(text, [name, SKIPPED_AT_ONCE]);
    const count = Number(slice!['skipped']);
    skipped += count;
    if (count < SKIPPED_AT_ONCE) return skipped;
  }
}

/** Stops or restarts the claims of a handler; `*` means all handlers. */
export async function pause(
  source: ConnectionSource,
  schema: string,
  handler: string,
  paused: boolean,
): Promise<void> {
  const text = paused
    ? `INSERT INTO ${schema}.pause (handler) VALUES ($1) ON CONFLICT DO NOTHING`
    : `DELETE FROM ${schema}.pause WHERE handler = $1`;
  await source.query(text, [toStored(handler)]);
}

/** The catalog from the rows of the function `read_catalog` or `register`. */
export function toCatalog(rows: readonly ResultRow[]): HandlerCatalog {
  return {
    version: Number(rows[0]!['o_version']),
    handlers: rows
      .filter((row) => row['o_name'] !== null)
      .map((row) => ({
        name: fromStored(row['o_name']!),
        patterns: (JSON.parse(row['o_patterns']!) as string[]).map(fromStored),
        firstSeenAt: toDate(row['o_first_ms']!),
        lastSeenAt: toDate(row['o_last_ms']!),
      })),
  };
}

/**
 * The functions of the catalog of handlers. A transaction that changes workers or the catalog has the catalog lock until it
 * ends. `receive` shares this lock with other receives while it stores events with one version of the catalog.
 */
export const catalogFunctions = (schema: string, catalogLock: string): string => `
-- Returns at least one row, for the version.
CREATE FUNCTION ${schema}.read_catalog()
RETURNS TABLE (o_version bigint, o_name text, o_patterns json, o_first_ms bigint, o_last_ms bigint)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $catalog$
  SELECT m.catalog_version, h.name, to_json(h.patterns), h.first_seen, greatest(h.last_seen, (
           SELECT max(w.heartbeat_at) FROM ${schema}.worker w
            WHERE NOT w.retired AND w.handlers @> jsonb_build_array(jsonb_build_object('name', h.name))))
    FROM ${schema}.meta m LEFT JOIN ${schema}.handler h ON true
   ORDER BY h.name
$catalog$;

-- Replaces the patterns of each handler by those of its live workers.
CREATE FUNCTION ${schema}.refresh_catalog() RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
AS $refresh$
BEGIN
  WITH live AS (
    SELECT d.entry ->> 'name' AS name, w.heartbeat_at AS seen, p.pattern
      FROM ${schema}.worker w
     CROSS JOIN LATERAL jsonb_array_elements(w.handlers) AS d (entry)
      LEFT JOIN LATERAL jsonb_array_elements_text(d.entry -> 'patterns') AS p (pattern) ON true
     WHERE NOT w.retired
  ), changed AS (
    INSERT INTO ${schema}.handler AS known (name, patterns, first_seen, last_seen)
    SELECT l.name, COALESCE(array_agg(DISTINCT l.pattern ORDER BY l.pattern) FILTER (WHERE l.pattern IS NOT NULL), '{}'),
           max(l.seen), max(l.seen)
      FROM live l GROUP BY l.name
    ON CONFLICT (name) DO UPDATE SET patterns = excluded.patterns
     WHERE known.patterns <> excluded.patterns
    RETURNING 1
  )
  UPDATE ${schema}.meta SET catalog_version = catalog_version + 1 WHERE EXISTS (SELECT FROM changed);
END $refresh$;

CREATE FUNCTION ${schema}.forget_handler(p_handler text) RETURNS boolean
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
AS $forget$
BEGIN
  PERFORM pg_advisory_xact_lock(${catalogLock});
  -- A worker whose heartbeat is late counts too: no other worker has declared it dead, so it may continue.
  IF EXISTS (
    SELECT FROM ${schema}.worker w
     WHERE NOT w.retired AND w.handlers @> jsonb_build_array(jsonb_build_object('name', p_handler))
  ) THEN
    RETURN false;
  END IF;
  DELETE FROM ${schema}.handler WHERE name = p_handler;
  IF FOUND THEN UPDATE ${schema}.meta SET catalog_version = catalog_version + 1; END IF;
  RETURN true;
END $forget$;

-- Skips the deliveries of a handler. It skips those that wait for their turn too, so none has to become claimable.
CREATE FUNCTION ${schema}.skip_all(p_handler text, p_limit integer) RETURNS bigint
LANGUAGE plpgsql VOLATILE ${BY_INDEX}
AS $skip$
DECLARE
  v_skipped bigint;
BEGIN
  WITH wanted AS MATERIALIZED (
    (SELECT d.event FROM ${schema}.delivery d
      WHERE d.handler = p_handler AND d.state = 'pending' AND NOT d.waiting AND d.crashes = 0
      ORDER BY d.due_at LIMIT p_limit)
    UNION ALL
    (SELECT d.event FROM ${schema}.delivery d
      WHERE d.handler = p_handler AND d.state = 'pending' AND NOT d.waiting AND d.crashes > 0 LIMIT p_limit)
    UNION ALL
    (SELECT d.event FROM ${schema}.delivery d WHERE d.handler = p_handler AND d.waiting LIMIT p_limit)
    UNION ALL
    (SELECT d.event FROM ${schema}.delivery d WHERE d.handler = p_handler AND d.state = 'dead' LIMIT p_limit)
    LIMIT p_limit
  ), skipped AS (
    UPDATE ${schema}.delivery d SET state = 'skipped', waiting = false, crashes = 0, due_at = NULL,
           finished_at = ${NOW_MS}
      FROM (SELECT w.event FROM wanted w ORDER BY w.event) w
     WHERE d.event = w.event AND d.handler = p_handler AND COALESCE(d.state IN ('pending', 'dead'), false)
    RETURNING 1
  )
  SELECT count(*) INTO v_skipped FROM skipped;
  RETURN v_skipped;
END $skip$;
`;
