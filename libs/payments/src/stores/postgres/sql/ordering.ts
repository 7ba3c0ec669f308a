import { BY_INDEX, LOOKED_UP, NEEDS_READ_COMMITTED, NOW_MS } from './postgres-sql.js';

/** Maximum number of keys that one call of `release_unreleased` locks, because the lock table has a limited size. */
const MAX_KEYS = 500;

/** SQL for the number of the advisory lock of an ordering key and handler. */
export const keyLock = (ordering: string, handler: string): string =>
  `hashtextextended(${ordering}::text || ${handler}, 0)`;

/** SQL condition that is true while a delivery with this ordering key and handler is running. */
export const isRunning = (schema: string, ordering: string, handler: string): string => `EXISTS (
  SELECT FROM ${schema}.delivery other
   WHERE other.ordering = ${ordering} AND other.handler = ${handler}
     AND other.state = 'running' AND other.ordering IS NOT NULL ${LOOKED_UP})`;

/**
 * These rules ensure that two deliveries of one ordering key and handler never run at the same time, and that every
 * waiting delivery becomes claimable in the end:
 *
 * 1. A claim or a receive that is about to run a delivery first takes the advisory lock of the key without waiting, and
 * keeps it until its transaction ends. The claim or receive skips a key if another transaction holds the lock of the
 * key. 2. After the claim or receive has taken the lock, a *new* statement checks whether a delivery of the key is
 * running. The snapshot of the statement is younger than the lock, so the statement sees what other transactions
 * committed before they released the lock. The rule needs READ COMMITTED: with another isolation level, the whole
 * transaction has one snapshot, which is older than the lock. If a delivery of the key runs, the due delivery is marked
 * as waiting. 3. A transaction that settles a running delivery first updates the delivery, then waits for the lock, and
 * then makes the next waiting delivery claimable in a new statement. So either the claim of rule 2 sees that the
 * running delivery was settled, or this new statement sees the waiting delivery. 4. Redrive and skip take the advisory
 * lock before they lock pending deliveries. So no other transaction has locked the waiting delivery of rule 3. 5. In
 * any case, a unique index on running deliveries prevents a second running delivery of a key and handler.
 *
 * A transaction that waits for several locks takes them in sorted order. A claim or a settle that holds a lock waits
 * only for the disk; redrive and skip wait for claims. Therefore, these operations cannot deadlock.
 */
export const orderingFunctions = (schema: string): string => `
-- This function and the next one inherit the settings of the functions that call them; see BY_INDEX.
-- Takes the advisory locks of keys, and waits for them. Returns whether there was a key.
CREATE OR REPLACE FUNCTION ${schema}.lock_keys(p_orderings uuid[], p_handlers text[]) RETURNS boolean
LANGUAGE plpgsql VOLATILE
AS $lock$
BEGIN
  ${NEEDS_READ_COMMITTED}
  PERFORM pg_advisory_xact_lock(k.lock) FROM (
    SELECT DISTINCT ${keyLock('n.ordering', 'n.handler')} AS lock
      FROM unnest(p_orderings, p_handlers) AS n (ordering, handler)
     WHERE n.ordering IS NOT NULL ORDER BY 1) k;
  RETURN FOUND;
END $lock$;

-- Makes the next waiting delivery of each key claimable and due now. Returns the keys that had a waiting delivery.
CREATE OR REPLACE FUNCTION ${schema}.release_next(p_orderings uuid[], p_handlers text[])
RETURNS TABLE (o_ordering uuid, o_handler text)
LANGUAGE plpgsql VOLATILE
AS $release$
BEGIN
  IF NOT ${schema}.lock_keys(p_orderings, p_handlers) THEN RETURN; END IF;
  -- Most keys have no waiting delivery. This check is faster than the start of the UPDATE below.
  PERFORM FROM unnest(p_orderings, p_handlers) AS n (ordering, handler)
    WHERE EXISTS (SELECT FROM ${schema}.delivery h
                   WHERE h.waiting AND h.handler = n.handler AND h.ordering = n.ordering) LIMIT 1;
  IF NOT FOUND THEN RETURN; END IF;
  RETURN QUERY
  WITH chosen AS MATERIALIZED (
    SELECT x.tuple FROM (
      SELECT DISTINCT n.ordering, n.handler FROM unnest(p_orderings, p_handlers) AS n (ordering, handler)
       WHERE n.ordering IS NOT NULL
    ) k CROSS JOIN LATERAL (
      SELECT h.ctid AS tuple FROM ${schema}.delivery h
       WHERE h.waiting AND h.handler = k.handler AND h.ordering = k.ordering
       ORDER BY h.due_at, h.event LIMIT 1 FOR UPDATE OF h
    ) x
  )
  UPDATE ${schema}.delivery d SET waiting = false, due_at = ${NOW_MS} FROM chosen c WHERE d.ctid = c.tuple
  RETURNING d.ordering, d.handler;
END $release$;

-- Makes the next waiting delivery of each key in the table unreleased claimable. Returns whether there was one. Each
-- heartbeat calls this function, which therefore waits for no lock: a key that another transaction has locked remains in
-- the table.
CREATE OR REPLACE FUNCTION ${schema}.release_unreleased() RETURNS boolean
LANGUAGE plpgsql VOLATILE ${BY_INDEX}
AS $unreleased$
DECLARE
  v_orderings uuid[];
  v_handlers text[];
BEGIN
  WITH free AS MATERIALIZED (
    SELECT u.ctid AS tuple FROM ${schema}.unreleased u
     WHERE pg_try_advisory_xact_lock(${keyLock('u.ordering', 'u.handler')}) LIMIT ${MAX_KEYS} FOR UPDATE SKIP LOCKED
  ), gone AS (
    DELETE FROM ${schema}.unreleased u USING free f WHERE u.ctid = f.tuple RETURNING u.ordering, u.handler
  )
  SELECT array_agg(g.ordering), array_agg(g.handler) INTO v_orderings, v_handlers FROM gone g;
  PERFORM FROM ${schema}.release_next(v_orderings, v_handlers);
  RETURN FOUND;
END $unreleased$;
`;
