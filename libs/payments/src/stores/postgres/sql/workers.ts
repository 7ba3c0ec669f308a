import type { PaymentsRuntime } from '../../../runtime/payments-runtime.js';
import type { HeartbeatResult } from '../../../inbox/store/inbox-store.js';
import type { CatalogChange } from '../../sql/sql-connection.js';
import { FORGET_HANDLER, REGISTER, REMOVE_WORKER, RETIRE } from '../../sql/workers.js';
import type { ConnectionSource, ResultRow } from '../connection/connection-source.js';
import { BY_INDEX, dialectOf, isClaimable, NEEDS_READ_COMMITTED, NOW_MS } from './postgres-sql.js';
import { historyWith } from './settle.js';

/**
 * A search for lost deliveries that takes at least this many milliseconds counts as slow. A search usually takes a few
 * milliseconds.
 */
const SLOW_MS = 1000;
/** The pause after a slow search, as a multiple of the duration of the search. */
const SLOW_PAUSE = 3;

/**
 * Returns a function that records a heartbeat and frees the deliveries of dead workers. The result `freed` is whether
 * the function freed any delivery. While another transaction is open, the database keeps the index entries of all
 * deliveries that have run since the start of the transaction, and the search for lost deliveries reads these entries.
 * Therefore, a heartbeat succeeds even if the search takes too long, and slow searches run less often.
 */
export function heartbeats(
  source: ConnectionSource,
  schema: string,
  runtime: Pick<PaymentsRuntime, 'monotonic'>,
): (workerId: string) => Promise<HeartbeatResult & { readonly freed: boolean }> {
  const renew = `
    UPDATE ${schema}.worker w SET heartbeat_at = ${NOW_MS}
      FROM (SELECT o.id, ${isExpired('o', NOW_MS)} AS late FROM ${schema}.worker o
             WHERE o.id = $1::uuid AND NOT o.retired FOR UPDATE) o
     WHERE w.id = o.id RETURNING o.late`;
  let nextSearchAt = -Infinity;

  async function freeLost(
    workerId: string,
    late: boolean,
  ): Promise<{ suspects: boolean; freed: boolean }> {
    const startedAt = runtime.monotonic();
    if (startedAt < nextSearchAt) return { suspects: false, freed: false };
    let row: ResultRow | undefined;
    try {
      const text = `SELECT * FROM ${schema}.free_lost($1::uuid, $2::boolean)`;
      [row] = await source.query(text, [workerId, late]);
    } catch (error) {
      // The source has already logged the error.
      if (runtime.monotonic() - startedAt < SLOW_MS) throw error;
    }
    const tookMs = runtime.monotonic() - startedAt;
    if (tookMs >= SLOW_MS) nextSearchAt = startedAt + (1 + SLOW_PAUSE) * tookMs;
    return { suspects: row?.['o_suspects'] === 't', freed: Number(row?.['o_freed'] ?? 0) > 0 };
  }

  return async (workerId) => {
    const [row] = await source.query(renew, [workerId]);
    return { alive: row !== undefined, ...(await freeLost(workerId, row?.['late'] === 't')) };
  };
}

const isExpired = (worker: string, now: string): string =>
  `${worker}.heartbeat_at + ${worker}.lease_ms <= ${now}`;

/**
 * Returns the SQL function for a change of the workers or the catalog. The function holds the catalog lock until its
 * transaction ends. Calls of `receive` share this lock with each other, so that the catalog does not change while they
 * store events. The function locks the worker before the catalog, as a heartbeat does. In another order, a change and a
 * heartbeat could deadlock and block receives.
 */
function changeFunction(schema: string, catalogLock: string, change: CatalogChange): string {
  const { name, types, statements } = change;
  const lockWorker = `PERFORM FROM ${schema}.worker w WHERE w.id = $1 FOR UPDATE;`;
  return `
CREATE OR REPLACE FUNCTION ${schema}.${name}(${types.join(', ')}) RETURNS void
LANGUAGE plpgsql VOLATILE ${BY_INDEX}
AS $change$
BEGIN
  ${NEEDS_READ_COMMITTED}
  ${types[0] === 'uuid' ? lockWorker : ''}
  PERFORM pg_advisory_xact_lock(${catalogLock});
  ${statements(dialectOf(schema)).join(';\n  ')};
END $change$;
`;
}

export const workerFunctions = (schema: string, catalogLock: string): string =>
  [REGISTER, REMOVE_WORKER, RETIRE, FORGET_HANDLER]
    .map((change) => changeFunction(schema, catalogLock, change))
    .join('') + heartbeatFunctions(schema);

const heartbeatFunctions = (schema: string): string => `
-- p_late: whether the heartbeat of this worker was itself late. If the heartbeat was late, the function declares no
-- worker dead, because the database may have been down for all workers.
CREATE OR REPLACE FUNCTION ${schema}.free_lost(p_worker uuid, p_late boolean)
RETURNS TABLE (o_suspects boolean, o_freed integer)
LANGUAGE plpgsql VOLATILE ${BY_INDEX}
AS $free$
DECLARE
  v_now CONSTANT bigint := ${NOW_MS};
  v_dead uuid[];
  v_retired uuid[];
  v_removed uuid[];
  v_orderings uuid[];
  v_handlers text[];
BEGIN
  -- A worker whose row is locked is renewing its heartbeat now. This worker has just renewed its own heartbeat.
  SELECT array_agg(x.id) FILTER (WHERE NOT x.retired), array_agg(x.id) FILTER (WHERE x.retired)
    INTO v_dead, v_retired
    FROM (SELECT w.id, w.retired FROM ${schema}.worker w
           WHERE ${isExpired('w', 'v_now')} AND NOT p_late AND (w.id <> p_worker OR w.retired)
           ORDER BY w.id FOR UPDATE SKIP LOCKED) x;

  -- Finds the running deliveries that no live worker runs, even if they were claimed after their worker was declared
  -- dead. The statement reads all running deliveries, which are few, because the slots of the workers limit their
  -- number.
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
  -- After the call above, because this call also takes locks of keys, in any order.
  o_freed := o_freed + ${schema}.release_unreleased()::integer;
  -- A retired worker is kept until its last running delivery has ended. Otherwise, its running deliveries would count
  -- as lost.
  SELECT array_agg(i.id) INTO v_removed FROM unnest(v_retired) AS i (id)
    WHERE NOT EXISTS (SELECT FROM ${schema}.delivery d WHERE d.worker = i.id AND d.state = 'running');
  o_suspects := EXISTS (
    SELECT FROM ${schema}.worker w CROSS JOIN LATERAL json_array_elements(w.handlers) AS h (entry)
     WHERE w.id = p_worker
       AND NOT EXISTS (SELECT FROM ${schema}.pause p WHERE p.handler IN (h.entry ->> 'name', '*'))
       AND EXISTS (
         SELECT FROM ${schema}.delivery d
          WHERE d.handler = h.entry ->> 'name' AND ${isClaimable(1)}));
  -- The workers are removed after all searches, because the removal locks the catalog and makes receives wait.
  PERFORM ${schema}.remove_worker(i.id) FROM unnest(v_dead || v_removed) AS i (id);
  RETURN NEXT;
END $free$;
`;
