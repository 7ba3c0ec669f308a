import { appended } from './attempt.history.js';
import { hidden } from './planner.hints.js';
import { BY_INDEX } from './schema.claims.js';
import { TALLIED } from './schema.bulk.js';

/** With the error that a failed attempt ended with. */
const ENDED = `CASE WHEN s.state = 'done' THEN ${appended('v_now', 'd')}
       ELSE ${appended('v_now', 'f', 's.error')} END`;

/**
 * Settles any number of attempts at once, where their leases are held, and returns the places of those it has.
 *
 * It waits for no row: one that is locked may be for as long as a handler's transaction lasts, and the others
 * need not. So what it has not settled is either lost or to be asked for alone.
 */
export const settlements = (schema: string): string => `
CREATE OR REPLACE FUNCTION ${schema}.settle(p_companies text[], p_ids text[], p_handlers text[],
  p_tokens bigint[], p_states text[], p_errors text[], p_retry_ms double precision[])
RETURNS TABLE (o_place bigint)
LANGUAGE plpgsql VOLATILE ${BY_INDEX}
AS $settle$
DECLARE
  v_now CONSTANT timestamptz := clock_timestamp();
BEGIN
  -- Until the transaction ends: what is finished here is counted below, all at once, and not by the trigger for each.
  PERFORM set_config('${TALLIED}', 'yes', true);
  RETURN QUERY
  WITH held AS MATERIALIZED (
    SELECT l.tuple, s.*
      FROM unnest(p_companies, p_ids, p_handlers, p_tokens, p_states, p_errors, p_retry_ms)
        WITH ORDINALITY AS s (company, id, handler, token, state, error, retry_ms, place)
     CROSS JOIN LATERAL (
       SELECT d.ctid AS tuple FROM ${schema}.deliveries d
        WHERE d.event = (SELECT e.seq FROM ${schema}.events e
                          WHERE e.company = s.company AND e.id = s.id)
          AND d.handler = s.handler AND d.token = s.token
          AND d.state = 'running' AND ${hidden('d.due_at > v_now')}
        LIMIT 1 FOR UPDATE OF d SKIP LOCKED
     ) l
  ), settled AS (
    UPDATE ${schema}.deliveries d
       SET state = s.state,
           last_error = COALESCE(s.error, d.last_error),
           due_at = v_now + s.retry_ms * interval '1 millisecond',
           finished_at = CASE WHEN s.retry_ms IS NULL THEN v_now END,
           history = ${ENDED}
      -- Where it is while it is locked. One that was changed since this statement began is not seen there, and
      -- asked for alone.
      FROM held s WHERE d.ctid = s.tuple
    RETURNING s.place, s.handler, s.state
  ), tallied AS (
    INSERT INTO ${schema}.tallies (handler, state, delta)
    SELECT handler, state, count(*) FROM settled WHERE state = 'done' GROUP BY handler, state
  )
  SELECT place FROM settled;
END $settle$;
`;
