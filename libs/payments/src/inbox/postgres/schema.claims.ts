import { appended } from './attempt.history.js';
import { hidden } from './planner.hints.js';

/** The history of a delivery whose lease ran out when it fell due. */
const LOST = appended('d.due_at', 'l');

/** How receives look: by index, and by one plan, whatever the statistics of the moment make of it. */
export const BY_INDEX_OR_HASH = `
  SET search_path = pg_catalog, pg_temp
  SET enable_seqscan = off
  SET enable_bitmapscan = off
  SET plan_cache_mode = force_generic_plan
  SET jit = off`;

/** How claims and settlements look: by index alone. */
export const BY_INDEX = `${BY_INDEX_OR_HASH}
  SET enable_hashjoin = off
  SET enable_mergejoin = off`;

/**
 * The functions that claims are made of. In the database, because a claim is several statements and should be
 * one round trip.
 *
 * Why two instances never lease two deliveries of one handler and ordering key, in `claim`:
 *
 * 1. Whoever wants to lease one first takes the key's advisory lock, without waiting, and keeps it until its
 *    transaction has ended; a key that is locked is passed over.
 * 2. Only then does a *new* statement, whose snapshot is younger than the lock, look whether a delivery of
 *    the key is running. It sees every lease there is: one that another instance made was committed before
 *    the lock was let go. (Hence READ COMMITTED: with one snapshot for the whole transaction it would not.)
 * 3. And should all of this be wrong one day, the unique index on running deliveries has the last word.
 *
 * Nothing in it waits: not for a lock on a key, nor for one on a row, which a handler in `context.commit`
 * may hold for long.
 */
export const claims = (schema: string): string => `
CREATE OR REPLACE FUNCTION ${schema}.claim(p_handlers text[], p_limit integer, p_lease_ms double precision)
RETURNS TABLE (o_company text, o_id text, o_handler text, o_token bigint, o_attempt integer,
               o_received_at timestamptz, o_raw bytea, o_newer boolean, o_taken_over boolean)
LANGUAGE plpgsql VOLATILE ${BY_INDEX}
AS $claim$
DECLARE
  v_now CONSTANT timestamptz := clock_timestamp();
  v_handlers text[];
  v_keys uuid[];
  v_events bigint[];
  v_names text[];
  v_left integer := p_limit;
  v_seen integer;
  v_taken integer;
  -- Where the last look ended.
  v_due timestamptz := '-infinity';
  v_event bigint := 0;
  v_name text := '';
BEGIN
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION 'claims of the payment inbox need READ COMMITTED, and this transaction is %',
      current_setting('transaction_isolation');
  END IF;
  SELECT array_agg(h.name) INTO v_handlers FROM unnest(p_handlers) AS h (name)
   WHERE NOT EXISTS (SELECT FROM ${schema}.pauses p WHERE p.handler IN (h.name, '*'));
  -- Where others claim at the same time, what they hold is passed over and the look goes on behind it.
  FOR look IN 1..8 LOOP
    EXIT WHEN v_handlers IS NULL OR v_left <= 0;
    SELECT array_agg(f.ordering) FILTER (WHERE f.free), array_agg(f.event) FILTER (WHERE f.free),
           array_agg(f.handler) FILTER (WHERE f.free), count(*),
           (array_agg(f.due_at))[count(*)], (array_agg(f.event))[count(*)], (array_agg(f.handler))[count(*)]
      INTO v_keys, v_events, v_names, v_seen, v_due, v_event, v_name
      FROM (
        SELECT c.*, c.ordering IS NULL
               OR pg_try_advisory_xact_lock(hashtextextended(c.ordering::text || c.handler, 0)) AS free
          FROM (
            SELECT d.event, d.handler, d.ordering, d.due_at
              FROM unnest(v_handlers) AS h (name) CROSS JOIN LATERAL (
                SELECT d.event, d.handler, d.ordering, d.due_at
                  FROM ${schema}.deliveries d
                 WHERE d.handler = h.name AND d.due_at >= v_due AND d.due_at <= v_now
                   AND (d.due_at, d.event, d.handler) > (v_due, v_event, v_name)
                   -- Of each key, the longest due; none where one of it is leased.
                   AND (d.ordering IS NULL OR NOT EXISTS (
                     SELECT FROM ${schema}.deliveries o
                      WHERE o.ordering = d.ordering AND o.handler = d.handler
                        AND o.state IN ('pending', 'running') AND o.ordering IS NOT NULL
                        AND ((o.due_at, o.event) < (d.due_at, d.event)
                          OR (o.state = 'running' AND o.due_at > v_now))))
                 ORDER BY d.due_at, d.event
                 LIMIT p_limit
              ) d
             ORDER BY d.due_at, d.event, d.handler
             LIMIT p_limit
          ) c
        -- Not merged with the query around it, so that each is locked once.
        OFFSET 0
      ) f;
    IF cardinality(v_events) > 0 THEN
      -- Twice where a lease of one of the keys had run out, which is rare.
      FOR try IN 1..2 LOOP
        RETURN QUERY
        WITH chosen AS MATERIALIZED (
          SELECT free.tuple, n.place, free.taken_over
            FROM unnest(v_keys, v_names, v_events) WITH ORDINALITY AS n (ordering, handler, event, place)
           CROSS JOIN LATERAL (
             SELECT d.ctid AS tuple, d.state = 'running' OR d.abandoned AS taken_over
               FROM ${schema}.deliveries d
              WHERE d.event = n.event AND d.handler = n.handler AND ${hidden('d.due_at <= v_now')}
                AND (n.ordering IS NULL OR NOT EXISTS (
                  SELECT FROM ${schema}.deliveries o
                   WHERE o.ordering = n.ordering AND o.handler = n.handler
                     AND o.state = 'running' AND o.ordering IS NOT NULL AND o.event <> n.event))
              LIMIT 1 FOR UPDATE OF d SKIP LOCKED
           ) free
           LIMIT v_left
        ), leased AS (
          UPDATE ${schema}.deliveries d
             SET state = 'running', attempts = d.attempts + 1, token = d.token + 1, abandoned = false,
                 -- What was abandoned has it in its history already.
                 history = CASE WHEN d.state = 'running' THEN ${LOST} ELSE d.history END,
                 started_at = clock_timestamp(),
                 due_at = clock_timestamp() + p_lease_ms * interval '1 millisecond'
            -- Where it is while it is locked. One that was changed since this statement began is not seen there, and
            -- left for the next claim.
            FROM chosen c WHERE d.ctid = c.tuple
          RETURNING c.place, c.taken_over, d.event, d.handler, d.token, d.attempts
        )
        SELECT e.company, e.id, l.handler, l.token, l.attempts, e.received_at, e.raw,
               e.ordering IS NOT NULL AND EXISTS (
                 SELECT FROM ${schema}.events later
                  WHERE later.ordering = e.ordering AND later.ordering IS NOT NULL
                    AND later.occurred_at > e.occurred_at
                    AND (l.handler = ANY (later.done_by) OR EXISTS (
                      SELECT FROM ${schema}.deliveries done
                       WHERE done.event = later.seq AND done.handler = l.handler
                         AND done.state = 'done'))),
               l.taken_over
          FROM leased l JOIN ${schema}.events e ON e.seq = l.event
         ORDER BY l.place;
        GET DIAGNOSTICS v_taken = ROW_COUNT;
        v_left := v_left - v_taken;
        EXIT WHEN v_taken = cardinality(v_events) OR v_left <= 0;
        -- Leases of keys that ran out make way. (One that is locked is being settled by its holder: its delivery
        -- stays running, and the key is passed over.)
        UPDATE ${schema}.deliveries d
           SET state = 'pending', abandoned = true, history = ${LOST}
          FROM unnest(v_keys, v_names, v_events) AS n (ordering, handler, event) CROSS JOIN LATERAL (
            SELECT o.event FROM ${schema}.deliveries o
             WHERE o.ordering = n.ordering AND o.handler = n.handler AND o.event <> n.event
               AND o.state = 'running' AND o.ordering IS NOT NULL AND ${hidden('o.due_at <= v_now')}
             LIMIT 1 FOR UPDATE SKIP LOCKED
          ) x
         WHERE d.event = x.event AND d.handler = n.handler;
        EXIT WHEN NOT FOUND;
      END LOOP;
    END IF;
    EXIT WHEN v_seen < p_limit;
  END LOOP;
END $claim$;

CREATE OR REPLACE FUNCTION ${schema}.next_due_in_ms(p_handlers text[]) RETURNS double precision
LANGUAGE plpgsql STABLE ${BY_INDEX}
AS $due$
BEGIN
  -- What waits for the lease of its key is due when that ends, which the leased one stands for.
  RETURN (SELECT extract(epoch FROM min(d.due_at) - clock_timestamp()) * 1000
    FROM unnest(p_handlers) AS h (name) CROSS JOIN LATERAL (
      SELECT d.due_at FROM ${schema}.deliveries d
       WHERE d.handler = h.name AND d.due_at IS NOT NULL
         AND (d.state = 'running' OR d.ordering IS NULL OR NOT EXISTS (
           SELECT FROM ${schema}.deliveries o
            WHERE o.ordering = d.ordering AND o.handler = d.handler
              AND o.state = 'running' AND o.ordering IS NOT NULL
              AND o.due_at > statement_timestamp()
           -- One look for each, not one at all of them.
           OFFSET 0))
       ORDER BY d.due_at LIMIT 1
    ) d
   WHERE NOT EXISTS (SELECT FROM ${schema}.pauses p WHERE p.handler IN (h.name, '*')));
END $due$;
`;
