import type { ConnectionSource } from '../connection/connection-source.js';
import { BY_INDEX, NOW } from './planner-settings.js';

/** How many keys maintenance looks at each time. The next time continues after them. */
const MAX_KEYS = 1000;

/** Before all keys: no handler has an empty name. */
const FIRST_KEY = ['', '00000000-0000-0000-0000-000000000000'];

/** The advisory lock of an ordering key and handler. */
export const keyLock = (ordering: string, handler: string): string =>
  `hashtextextended(${ordering}::text || ${handler}, 0)`;

/**
 * At the end of an EXISTS: the planner then looks the key up in the index. Otherwise it may hash the whole index, which it
 * takes for empty, and read the entry of each delivery that ran since the last vacuum.
 */
export const LOOKED_UP = 'OFFSET 0';

/** Whether a delivery of the ordering key runs. */
export const isRunning = (schema: string, ordering: string, handler: string): string => `EXISTS (
  SELECT FROM ${schema}.delivery other
   WHERE other.ordering = ${ordering} AND other.handler = ${handler}
     AND other.state = 'running' AND other.ordering IS NOT NULL ${LOOKED_UP})`;

/** Whether the handler has done a later event of the ordering key. */
export const newerHandled = (
  schema: string,
  ordering: string,
  handler: string,
  occurredAt: string,
): string => `(EXISTS (
    SELECT FROM ${schema}.delivery newer
     WHERE newer.ordering = ${ordering} AND newer.handler = ${handler} AND newer.occurred_at > ${occurredAt}
       AND newer.state = 'done' AND newer.ordering IS NOT NULL)
  OR EXISTS (
    SELECT FROM ${schema}.event pruned
     WHERE pruned.ordering = ${ordering} AND pruned.occurred_at > ${occurredAt}
       AND ${handler} = ANY (pruned.done_by) AND pruned.done_by IS NOT NULL AND pruned.ordering IS NOT NULL))`;

/**
 * Why two deliveries of one ordering key and handler never run at the same time, and why no held delivery is forgotten:
 *
 * 1. A claim or a receive that wants to run a delivery first takes the advisory lock of the key without waiting, and
 *    keeps it until its transaction ends. It skips a key whose lock another transaction holds.
 * 2. After that, a *new* statement checks whether a delivery of the key is running. Its snapshot is younger than the
 *    lock, so it sees what other transactions committed before they released the lock. This needs READ COMMITTED: one
 *    snapshot for the whole transaction would be older than the lock. If a delivery runs, the due delivery is held.
 * 3. A transaction that ends a running delivery first updates it, then waits for the lock, and then releases the next
 *    held delivery in a new statement. So either the claim sees the end, or this statement sees the held delivery.
 * 4. Redrive and skip take the lock before they lock pending deliveries. So no other transaction has locked the held
 *    delivery in step 3.
 * 5. A unique index on running deliveries makes two of them impossible in any case.
 *
 * Each transaction takes the locks that it waits for in sorted order. A claim or a settlement that holds one waits only
 * for the disk; redrive and skip wait for claims. So these cannot deadlock.
 */
export const orderingFunctions = (schema: string): string => `
CREATE FUNCTION ${schema}.lock_keys(p_orderings uuid[], p_handlers text[]) RETURNS boolean
LANGUAGE plpgsql VOLATILE ${BY_INDEX}
AS $lock$
BEGIN
  PERFORM pg_advisory_xact_lock(k.lock) FROM (
    SELECT DISTINCT ${keyLock('n.ordering', 'n.handler')} AS lock
      FROM unnest(p_orderings, p_handlers) AS n (ordering, handler)
     WHERE n.ordering IS NOT NULL ORDER BY 1) k;
  RETURN FOUND;
END $lock$;

CREATE FUNCTION ${schema}.release_next(p_orderings uuid[], p_handlers text[])
RETURNS TABLE (o_ordering uuid, o_handler text)
LANGUAGE plpgsql VOLATILE ${BY_INDEX}
AS $release$
BEGIN
  IF NOT ${schema}.lock_keys(p_orderings, p_handlers) THEN RETURN; END IF;
  -- Most keys have none, and to set up an UPDATE takes longer than to look.
  PERFORM FROM unnest(p_orderings, p_handlers) AS n (ordering, handler)
    WHERE EXISTS (SELECT FROM ${schema}.delivery h
                   WHERE h.held AND h.handler = n.handler AND h.ordering = n.ordering) LIMIT 1;
  IF NOT FOUND THEN RETURN; END IF;
  RETURN QUERY
  WITH chosen AS MATERIALIZED (
    SELECT x.tuple FROM (
      SELECT DISTINCT n.ordering, n.handler FROM unnest(p_orderings, p_handlers) AS n (ordering, handler)
       WHERE n.ordering IS NOT NULL
    ) k CROSS JOIN LATERAL (
      SELECT h.ctid AS tuple FROM ${schema}.delivery h
       WHERE h.held AND h.handler = k.handler AND h.ordering = k.ordering
       ORDER BY h.due_at, h.event LIMIT 1 FOR UPDATE OF h
    ) x
  )
  UPDATE ${schema}.delivery d SET held = false, due_at = ${NOW} FROM chosen c WHERE d.ctid = c.tuple
  RETURNING d.ordering, d.handler;
END $release$;

-- Releases held deliveries of keys of which nothing runs and nothing is due. There are none unless a process died
-- between a commit with a strict isolation level and the release after it.
-- Returns the last key that it looked at, or NULL after the last key of all.
CREATE FUNCTION ${schema}.release_stranded(p_handler text, p_ordering uuid)
RETURNS TABLE (o_released boolean, o_handler text, o_ordering uuid)
LANGUAGE plpgsql VOLATILE ${BY_INDEX}
AS $stranded$
DECLARE
  v_orderings uuid[];
  v_handlers text[];
  v_looked integer;
BEGIN
  WITH RECURSIVE key AS (
    (SELECT d.handler, d.ordering FROM ${schema}.delivery d
      WHERE d.held AND (d.handler, d.ordering) > (p_handler, p_ordering) ORDER BY d.handler, d.ordering LIMIT 1)
    UNION ALL
    SELECT n.handler, n.ordering FROM key k CROSS JOIN LATERAL (
      SELECT d.handler, d.ordering FROM ${schema}.delivery d
       WHERE d.held AND (d.handler, d.ordering) > (k.handler, k.ordering)
       ORDER BY d.handler, d.ordering LIMIT 1) n
  )
  SELECT array_agg(k.ordering), array_agg(k.handler), count(*) INTO v_orderings, v_handlers, v_looked
    FROM (SELECT * FROM key LIMIT ${MAX_KEYS}) k;
  IF v_looked = ${MAX_KEYS} THEN
    o_handler := v_handlers[v_looked];
    o_ordering := v_orderings[v_looked];
  END IF;
  SELECT array_agg(k.ordering), array_agg(k.handler) INTO v_orderings, v_handlers
    FROM unnest(v_orderings, v_handlers) AS k (ordering, handler)
   WHERE NOT ${isRunning(schema, 'k.ordering', 'k.handler')}
     AND NOT EXISTS (
       SELECT FROM ${schema}.delivery w
        WHERE w.ordering = k.ordering AND w.handler = k.handler AND w.due_at <= clock_timestamp()
          AND w.state = 'pending' AND NOT w.held AND w.ordering IS NOT NULL);
  PERFORM FROM ${schema}.release_next(v_orderings, v_handlers);
  o_released := FOUND;
  RETURN NEXT;
END $stranded$;
`;

/** Releases held deliveries that no settlement will release. */
export class StrandedKeys {
  /** Where the previous call ended, so that the next one continues there. */
  #after = FIRST_KEY;

  constructor(
    private readonly source: ConnectionSource,
    private readonly schema: string,
  ) {}

  /** Returns whether deliveries became claimable. */
  async release(): Promise<boolean> {
    const text = `SELECT * FROM ${this.schema}.release_stranded($1::text, $2::uuid)`;
    const [row] = await this.source.query(text, this.#after);
    const { o_released, o_handler, o_ordering } = row!;
    this.#after = o_handler == null ? FIRST_KEY : [o_handler, o_ordering!];
    return o_released === 't';
  }
}
