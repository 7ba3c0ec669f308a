import { COUNT_CAP } from '../../store/stored-event.js';
import {
  EXPECTATION_EVENT_TYPE,
  EXPECTATION_ID,
  POLL_HANDLER,
} from '../../store/expectation-store.js';
import { asInterval, BY_INDEX, IS_OPEN, STORE_NOW, withoutPartialIndex } from './schema.js';

/** SQL: whether a delivery `d` is a poll. */
const IS_POLL = `d.handler = '${POLL_HANDLER}'`;

/**
 * The functions `expect` and `attach` also run in transactions of the application, with any isolation level. They only
 * insert rows, so no other process waits for such a transaction, except for one that stores the same reference or
 * attaches to it. They return texts and numbers, which all drivers return alike.
 */
const expectFunctions = (schema: string): string => `
CREATE FUNCTION ${schema}.expect(p_company text, p_reference text, p_transaction text, p_due_by_ms text,
  p_schedule text, p_first_ms text) RETURNS integer
LANGUAGE plpgsql VOLATILE ${BY_INDEX}
AS $expect$
DECLARE
  v_now CONSTANT timestamptz := ${STORE_NOW};
  v_event bigint;
BEGIN
  -- An expectation must be durable before the payment is requested.
  IF current_setting('synchronous_commit') = 'off' THEN
    PERFORM set_config('synchronous_commit', 'on', true);
  END IF;
  INSERT INTO ${schema}.event (company, id, event_type, source, occurred_at, received_at, digest, raw, stale, unhandled)
  VALUES (p_company, '${EXPECTATION_ID}' || p_reference, '${EXPECTATION_EVENT_TYPE}', 'expectation', v_now, v_now,
    sha256('{}'), '{}', false, false)
  ON CONFLICT DO NOTHING RETURNING seq INTO v_event;
  IF v_event IS NULL THEN RETURN 0; END IF;
  INSERT INTO ${schema}.expectation (event, company, reference, created_at, due_by, schedule)
  VALUES (v_event, p_company, p_reference, v_now, to_timestamp(NULLIF(p_due_by_ms, '')::float8 / 1000), p_schedule);
  IF p_transaction <> '' THEN
    INSERT INTO ${schema}.expected_transaction (event, company, transaction_id)
    VALUES (v_event, p_company, p_transaction);
  END IF;
  INSERT INTO ${schema}.delivery (event, handler, occurred_at, state, due_at)
  VALUES (v_event, '${POLL_HANDLER}', v_now, 'pending', v_now + ${asInterval('p_first_ms::float8')});
  RETURN 1;
END $expect$;

CREATE FUNCTION ${schema}.attach(p_company text, p_reference text, p_transaction text) RETURNS text
LANGUAGE plpgsql VOLATILE ${BY_INDEX}
AS $attach$
DECLARE
  v_event bigint;
  v_known text;
BEGIN
  SELECT x.event INTO v_event FROM ${schema}.expectation x WHERE x.reference = p_reference AND x.company = p_company;
  IF NOT FOUND THEN RETURN 'unknown'; END IF;
  INSERT INTO ${schema}.expected_transaction (event, company, transaction_id)
  VALUES (v_event, p_company, p_transaction) ON CONFLICT DO NOTHING;
  IF FOUND THEN RETURN 'attached'; END IF;
  SELECT t.transaction_id INTO v_known FROM ${schema}.expected_transaction t WHERE t.event = v_event;
  RETURN CASE WHEN v_known = p_transaction THEN 'attached' ELSE 'conflict' END;
END $attach$;
`;

/**
 * The functions that end expectations. They lock rows in an order in which no two transactions can deadlock:
 *
 * - `fulfil` and `cancel` lock expectations, in the order of their events, and then polls that no other transaction has
 *   locked. They do not wait for a locked poll, because a heartbeat that has locked it may wait for this receive. Such a
 *   poll becomes due or is running. It reads the expectation first, and `settle_poll` makes it done.
 * - `settle_poll` locks its poll, and then its expectation.
 */
const endFunctions = (schema: string): string => `
-- Makes the pending polls of expectations done.
CREATE FUNCTION ${schema}.end_polls(p_events bigint[]) RETURNS void
LANGUAGE plpgsql VOLATILE ${BY_INDEX}
AS $end$
BEGIN
  WITH pending AS MATERIALIZED (
    SELECT l.tuple FROM unnest(p_events) AS n (event) CROSS JOIN LATERAL (
      SELECT d.ctid AS tuple FROM ${schema}.delivery d
       WHERE d.event = n.event AND ${IS_POLL} AND ${withoutPartialIndex(`d.state = 'pending'`)}
       LIMIT 1 FOR UPDATE OF d SKIP LOCKED
    ) l
  )
  UPDATE ${schema}.delivery d
     SET state = 'done', waiting = false, crashes = 0, due_at = NULL, finished_at = ${STORE_NOW}
    FROM pending p WHERE d.ctid = p.tuple;
END $end$;

-- Fulfils the expectations of received events. p_seqs has the number of each event that was stored now. A known event
-- fulfils if it has the type and the transaction of the received one. Its body may differ: two polls with the same result
-- have different times.
CREATE FUNCTION ${schema}.fulfil(p_seqs bigint[], p_companies text[], p_ids text[], p_once bytea[], p_types text[],
  p_keys text[], p_references text[], p_fulfils boolean[]) RETURNS void
LANGUAGE plpgsql VOLATILE ${BY_INDEX}
AS $fulfil$
DECLARE
  v_expected bigint[];
  v_received bigint[];
BEGIN
  SELECT array_agg(f.event), array_agg(f.seq) INTO v_expected, v_received
    FROM (
      SELECT DISTINCT ON (x.event) x.event, COALESCE(i.seq, k.seq) AS seq
        FROM unnest(p_seqs, p_companies, p_ids, p_once, p_types, p_keys, p_references, p_fulfils)
          WITH ORDINALITY AS i (seq, company, id, once, event_type, key, reference, fulfils, position)
       CROSS JOIN LATERAL (
         SELECT t.event FROM ${schema}.expected_transaction t
          WHERE t.transaction_id = i.key AND t.company = i.company
         UNION ALL
         SELECT r.event FROM ${schema}.expectation r WHERE r.reference = i.reference AND r.company = i.company
       ) x
        LEFT JOIN LATERAL (
          SELECT y.seq FROM (
            SELECT a.seq, a.event_type, a.ordering_key, 1 AS rank FROM ${schema}.event a
             WHERE a.company = i.company AND a.id = i.id
            UNION ALL
            SELECT b.seq, b.event_type, b.ordering_key, 2 FROM ${schema}.event b
             WHERE b.once = i.once AND b.once IS NOT NULL
          ) y WHERE i.seq IS NULL AND y.event_type = i.event_type AND y.ordering_key IS NOT DISTINCT FROM i.key
           ORDER BY y.rank LIMIT 1
        ) k ON true
       WHERE i.fulfils AND COALESCE(i.seq, k.seq) IS NOT NULL
       ORDER BY x.event, i.position
    ) f;
  IF v_expected IS NULL THEN RETURN; END IF;
  PERFORM FROM ${schema}.expectation x WHERE x.event = ANY (v_expected) AND ${withoutPartialIndex(IS_OPEN)}
    ORDER BY x.event FOR UPDATE;
  IF NOT FOUND THEN RETURN; END IF;
  WITH fulfilled AS (
    UPDATE ${schema}.expectation x
       SET state = 'fulfilled', fulfilled_at = ${STORE_NOW}, fulfilled_by = e.source, fulfilled_id = e.id,
           fulfilled_type = e.event_type
      FROM unnest(v_expected, v_received) AS f (event, seq) JOIN ${schema}.event e ON e.seq = f.seq
     WHERE x.event = f.event AND ${withoutPartialIndex(IS_OPEN)}
    RETURNING x.event
  )
  SELECT array_agg(f.event) INTO v_expected FROM fulfilled f;
  PERFORM ${schema}.end_polls(v_expected);
END $fulfil$;

CREATE FUNCTION ${schema}.cancel(p_company text, p_reference text) RETURNS boolean
LANGUAGE plpgsql VOLATILE ${BY_INDEX}
AS $cancel$
DECLARE
  v_event bigint;
BEGIN
  UPDATE ${schema}.expectation x SET state = 'cancelled'
   WHERE x.reference = p_reference AND x.company = p_company AND ${withoutPartialIndex(IS_OPEN)}
  RETURNING x.event INTO v_event;
  IF v_event IS NULL THEN RETURN false; END IF;
  PERFORM ${schema}.end_polls(ARRAY[v_event]);
  RETURN true;
END $cancel$;

-- Records a poll. p_next_ms is NULL if no poll follows.
CREATE FUNCTION ${schema}.settle_poll(p_event bigint, p_token bigint, p_result text, p_detail text, p_next_ms float8,
  p_overdue boolean) RETURNS boolean
LANGUAGE plpgsql VOLATILE ${BY_INDEX}
AS $poll$
DECLARE
  v_now CONSTANT timestamptz := ${STORE_NOW};
  v_next timestamptz;
BEGIN
  PERFORM FROM ${schema}.delivery d
    WHERE d.event = p_event AND ${IS_POLL} AND d.token = p_token AND ${withoutPartialIndex(`d.state = 'running'`)}
    FOR UPDATE;
  IF NOT FOUND THEN RETURN false; END IF;
  UPDATE ${schema}.expectation x
     SET polls = x.polls + 1, last_poll_at = v_now, last_result = p_result, last_detail = p_detail,
         contradiction = CASE p_result WHEN 'contradiction' THEN p_detail ELSE x.contradiction END,
         state = CASE WHEN p_overdue AND x.state = 'waiting' THEN 'overdue' ELSE x.state END
   WHERE x.event = p_event
  RETURNING CASE WHEN x.state = 'waiting' THEN v_now + ${asInterval('p_next_ms')} END INTO v_next;
  UPDATE ${schema}.delivery d
     SET state = CASE WHEN v_next IS NULL THEN 'done' ELSE 'pending' END, worker = NULL, alone = false, crashes = 0,
         attempts = 0, due_at = v_next, finished_at = CASE WHEN v_next IS NULL THEN v_now END
   WHERE d.event = p_event AND ${IS_POLL};
  RETURN true;
END $poll$;
`;

/** The function `expectation_counts` counts up to the cap, with one index. */
const countsFunction = (schema: string): string => `
CREATE FUNCTION ${schema}.expectation_counts(OUT o_waiting bigint, OUT o_overdue bigint)
LANGUAGE plpgsql STABLE ${BY_INDEX}
AS $counts$
BEGIN
  SELECT count(*) INTO o_waiting FROM (
    SELECT FROM ${schema}.expectation x WHERE x.state = 'waiting' LIMIT ${COUNT_CAP + 1}) c;
  SELECT count(*) INTO o_overdue FROM (
    SELECT FROM ${schema}.expectation x WHERE x.state = 'overdue' LIMIT ${COUNT_CAP + 1}) c;
END $counts$;
`;

/** The functions of expectations. */
export const expectationFunctions = (schema: string): string =>
  expectFunctions(schema) + endFunctions(schema) + countsFunction(schema);
