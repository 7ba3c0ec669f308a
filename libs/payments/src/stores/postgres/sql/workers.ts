import type {
  HandlerCatalog,
  HeartbeatResult,
  WorkerRegistration,
} from '../../../inbox/store/inbox-store.js';
import type { ConnectionSource } from '../connection/connection-source.js';
import { toCatalog } from './catalog.js';
import { BY_INDEX, NOW_MS } from './schema.js';
import { historyWith } from './settle.js';
import { toStored } from '../../sql/stored-text.js';

/** Adds a worker and its handlers, and returns the catalog. */
export async function register(
  source: ConnectionSource,
  schema: string,
  { id, leaseMs, handlers }: WorkerRegistration,
): Promise<HandlerCatalog> {
  const declared = handlers.map(({ name, patterns }) => ({
    name: toStored(name),
    patterns: patterns.map(toStored),
  }));
  const values = [id, Math.round(leaseMs), JSON.stringify(declared)];
  return toCatalog(
    await source.query(`SELECT * FROM ${schema}.register($1::uuid, $2::bigint, $3::jsonb)`, values),
  );
}

/** Records a heartbeat of a worker and frees the deliveries of dead workers. `freed`: whether it freed any delivery. */
export async function heartbeat(
  source: ConnectionSource,
  schema: string,
  worker: string,
): Promise<HeartbeatResult & { readonly freed: boolean }> {
  const [row] = await source.query(`SELECT * FROM ${schema}.heartbeat($1::uuid)`, [worker]);
  return {
    alive: row!['o_alive'] === 't',
    suspects: row!['o_suspects'] === 't',
    freed: row!['o_freed'] !== '0',
  };
}

/** Retires a worker. */
export async function retire(
  source: ConnectionSource,
  schema: string,
  worker: string,
  graceMs: number,
): Promise<void> {
  await source.query(`SELECT ${schema}.retire($1::uuid, $2::bigint)`, [
    worker,
    Math.round(graceMs),
  ]);
}

/** SQL for whether the last heartbeat of a worker is older than its lease. */
const isExpired = (worker: string): string =>
  `${worker}.heartbeat_at + ${worker}.lease_ms <= v_now`;

/** The functions that register, renew, retire and remove workers. */
export const workerFunctions = (schema: string, catalogLock: string): string => `
CREATE FUNCTION ${schema}.register(p_id uuid, p_lease_ms bigint, p_handlers jsonb)
RETURNS TABLE (o_version bigint, o_name text, o_patterns json, o_first_ms bigint, o_last_ms bigint)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
AS $register$
BEGIN
  PERFORM pg_advisory_xact_lock(${catalogLock});
  INSERT INTO ${schema}.worker (id, heartbeat_at, lease_ms, handlers)
  VALUES (p_id, ${NOW_MS}, p_lease_ms, p_handlers)
  ON CONFLICT (id) DO UPDATE SET heartbeat_at = excluded.heartbeat_at, retired = false,
    lease_ms = excluded.lease_ms, handlers = excluded.handlers;
  PERFORM ${schema}.refresh_catalog();
  RETURN QUERY SELECT * FROM ${schema}.read_catalog();
END $register$;

-- Removes workers, and stores their last heartbeats with their handlers.
CREATE FUNCTION ${schema}.remove_workers(p_ids uuid[]) RETURNS void
LANGUAGE plpgsql VOLATILE ${BY_INDEX}
AS $remove$
BEGIN
  IF p_ids IS NULL THEN RETURN; END IF;
  PERFORM pg_advisory_xact_lock(${catalogLock});
  UPDATE ${schema}.handler h SET last_seen = w.heartbeat_at
    FROM (
      SELECT d.entry ->> 'name' AS name, max(w.heartbeat_at) AS heartbeat_at
        FROM ${schema}.worker w CROSS JOIN LATERAL jsonb_array_elements(w.handlers) AS d (entry)
       WHERE w.id = ANY (p_ids) GROUP BY 1
    ) w
   WHERE h.name = w.name AND h.last_seen < w.heartbeat_at;
  DELETE FROM ${schema}.worker w WHERE w.id = ANY (p_ids);
  PERFORM ${schema}.refresh_catalog();
END $remove$;

CREATE FUNCTION ${schema}.heartbeat(p_worker uuid)
RETURNS TABLE (o_alive boolean, o_suspects boolean, o_freed integer)
LANGUAGE plpgsql VOLATILE ${BY_INDEX}
AS $heartbeat$
DECLARE
  v_now CONSTANT bigint := ${NOW_MS};
  v_dead uuid[];
  v_retired uuid[];
  v_orderings uuid[];
  v_handlers text[];
  v_late boolean;
BEGIN
  -- A heartbeat that is late itself declares no worker dead, since the database may have been down for all workers.
  SELECT ${isExpired('w')} INTO v_late FROM ${schema}.worker w WHERE w.id = p_worker AND NOT w.retired;
  UPDATE ${schema}.worker w SET heartbeat_at = v_now WHERE w.id = p_worker AND NOT w.retired;
  o_alive := FOUND;
  -- A worker whose row is locked renews its heartbeat at this moment.
  SELECT array_agg(x.id) FILTER (WHERE NOT x.retired), array_agg(x.id) FILTER (WHERE x.retired)
    INTO v_dead, v_retired
    FROM (SELECT w.id, w.retired FROM ${schema}.worker w
           WHERE ${isExpired('w')} AND v_late IS NOT TRUE ORDER BY w.id FOR UPDATE SKIP LOCKED) x;

  -- Finds the deliveries that run under no live worker, even if they were claimed after their worker was declared dead. It
  -- reads all running deliveries: they are few, because the slots of the workers bound them.
  WITH lost AS MATERIALIZED (
    SELECT d.ctid AS tuple, d.worker = ANY (v_retired) AS of_retired FROM ${schema}.delivery d
     WHERE d.state = 'running' AND NOT EXISTS (
             SELECT FROM ${schema}.worker w WHERE w.id = d.worker
                AND w.id <> ALL (COALESCE(v_dead, '{}')) AND w.id <> ALL (COALESCE(v_retired, '{}')))
       FOR UPDATE OF d SKIP LOCKED
  ), freed AS (
    UPDATE ${schema}.delivery d
       SET state = 'pending', worker = NULL, due_at = v_now, token = d.token + 1,
           attempts = CASE WHEN d.crashes > 0 AND NOT COALESCE(l.of_retired, false) THEN d.attempts ELSE d.attempts - 1 END,
           crashes = CASE WHEN l.of_retired THEN d.crashes ELSE d.crashes + 1 END,
           failed_at = CASE WHEN l.of_retired THEN d.failed_at ELSE v_now END,
           history = CASE WHEN l.of_retired THEN d.history ELSE ${historyWith('v_now', `'l'`)} END
      FROM lost l WHERE d.ctid = l.tuple
    RETURNING d.ordering, d.handler
  )
  SELECT array_agg(f.ordering), array_agg(f.handler) INTO v_orderings, v_handlers FROM freed f;
  o_freed := COALESCE(cardinality(v_handlers), 0);
  PERFORM FROM ${schema}.release_next(v_orderings, v_handlers);
  -- A retired worker remains until nothing runs under it. Otherwise its running deliveries would count as lost.
  PERFORM ${schema}.remove_workers((
    SELECT array_agg(i.id) FROM unnest(v_dead || v_retired) AS i (id)
     WHERE i.id = ANY (v_dead) OR NOT EXISTS (
       SELECT FROM ${schema}.delivery d WHERE d.worker = i.id AND d.state = 'running')));
  o_suspects := EXISTS (
    SELECT FROM ${schema}.worker w CROSS JOIN LATERAL jsonb_array_elements(w.handlers) AS h (entry)
     WHERE w.id = p_worker
       AND NOT EXISTS (SELECT FROM ${schema}.pause p WHERE p.handler IN (h.entry ->> 'name', '*'))
       AND EXISTS (
         SELECT FROM ${schema}.delivery d
          WHERE d.handler = h.entry ->> 'name' AND d.state = 'pending' AND NOT d.waiting AND d.crashes > 0));
  RETURN NEXT;
END $heartbeat$;

CREATE FUNCTION ${schema}.retire(p_worker uuid, p_grace_ms bigint) RETURNS void
LANGUAGE plpgsql VOLATILE ${BY_INDEX}
AS $retire$
BEGIN
  -- Locks the worker before the catalog, as a heartbeat does. In another order, the two could deadlock and stall receives.
  PERFORM FROM ${schema}.worker w WHERE w.id = p_worker FOR UPDATE;
  PERFORM FROM ${schema}.delivery d
    WHERE d.worker = p_worker AND d.state = 'running' LIMIT 1;
  IF NOT FOUND THEN
    PERFORM ${schema}.remove_workers(ARRAY[p_worker]);
    RETURN;
  END IF;
  PERFORM pg_advisory_xact_lock(${catalogLock});
  UPDATE ${schema}.worker w SET retired = true, heartbeat_at = ${NOW_MS}, lease_ms = p_grace_ms
   WHERE w.id = p_worker;
  PERFORM ${schema}.refresh_catalog();
END $retire$;
`;
