import type { DeliverySelection, InboxStore } from '../../../inbox/store/inbox-store.js';
import type { ConnectionSource } from '../connection/connection-source.js';
import { BY_INDEX, NOW_MS } from './postgres-sql.js';
import { historyWith } from './settle.js';
import { toStored } from '../../sql/sql-connection.js';

export async function redrive(
  source: ConnectionSource,
  schema: string,
  selections: readonly DeliverySelection[],
  { force, dueInMs, fulfils = [], unchangedSince }: Parameters<InboxStore['redrive']>[1],
): Promise<number> {
  const columns = columnsOf(selections);
  if (columns[0].length === 0) return 0;
  const due = selections.flatMap(({ handlers }, index) =>
    handlers.map(() => Math.round(Math.max(0, dueInMs[index] ?? 0))),
  );
  const text = `SELECT ${schema}.redrive($1::text[], $2::text[], $3::text[], $4::bigint[], $5::boolean, $6::text[], $7::bigint) AS changed`;
  const since = unchangedSince?.getTime() ?? null;
  const values = [...columns, due, force, fulfils.map(toStored), since];
  const [row] = await source.query(text, values);
  return Number(row!['changed']);
}

export async function skip(
  source: ConnectionSource,
  schema: string,
  selections: readonly DeliverySelection[],
): Promise<number> {
  const columns = columnsOf(selections);
  if (columns[0].length === 0) return 0;
  const text = `SELECT ${schema}.skip($1::text[], $2::text[], $3::text[]) AS skipped`;
  const [row] = await source.query(text, columns);
  return Number(row!['skipped']);
}

/** Three arrays of the same length: the company, event id and handler of each selected delivery. */
function columnsOf(selections: readonly DeliverySelection[]): [string[], string[], string[]] {
  const rows = selections.flatMap(({ company, id, handlers }) =>
    handlers.map((handler) => [company, id, handler].map(toStored)),
  );
  return [rows.map((row) => row[0]!), rows.map((row) => row[1]!), rows.map((row) => row[2]!)];
}

/**
 * SQL that finds the selected events and handlers, each pair once, and takes their locks; see rule 4 in `ordering.ts`.
 */
const lockSelected = (schema: string): string => `
  SELECT array_agg(s.seq), array_agg(s.handler), array_agg(s.ordering) INTO v_events, v_names, v_orderings
    FROM (SELECT DISTINCT e.seq, w.handler, e.ordering
            FROM unnest(p_companies, p_ids, p_handlers) AS w (company, id, handler)
            JOIN ${schema}.event e ON e.company = w.company AND e.id = w.id) s;
  PERFORM ${schema}.lock_keys(v_orderings, v_names);`;

/**
 * The function `redrive` locks the events before the deliveries. The function waits for an event that is being pruned,
 * and then ignores the event. `redrive` locks all rows in one fixed order, so that the requests of two operators cannot
 * deadlock.
 */
export const redriveFunctions = (schema: string): string => `
CREATE OR REPLACE FUNCTION ${schema}.redrive(p_companies text[], p_ids text[], p_handlers text[], p_due_ms bigint[],
  p_force boolean, p_fulfils text[], p_unchanged_since bigint) RETURNS bigint
LANGUAGE plpgsql VOLATILE ${BY_INDEX}
AS $redrive$
DECLARE
  v_now CONSTANT bigint := ${NOW_MS};
  v_orderings uuid[];
  v_events bigint[];
  v_names text[];
  v_changed bigint;
  v_added bigint[];
  v_refused bigint[] := '{}';
  v_stale record;
BEGIN
  ${lockSelected(schema)}
  PERFORM FROM ${schema}.event e WHERE e.seq = ANY (v_events) ORDER BY e.seq FOR NO KEY UPDATE;

  -- From now on, a stale event is the event of its transaction, unless the transaction already has another event.
  FOR v_stale IN
    SELECT e.seq, e.company, e.id, e.once, e.event_type, e.ordering_key, e.ordering, e.reference, e.digest
      FROM ${schema}.event e
     WHERE e.seq = ANY (v_events) AND e.stale AND e.raw IS NOT NULL
       AND NOT EXISTS (SELECT FROM ${schema}.delivery d WHERE d.event = e.seq) ORDER BY e.seq
  LOOP
    BEGIN
      UPDATE ${schema}.event e SET stale = false WHERE e.seq = v_stale.seq;
      PERFORM ${schema}.fulfil(ARRAY[v_stale.seq], ARRAY[v_stale.company], ARRAY[v_stale.id], ARRAY[v_stale.once],
        ARRAY[v_stale.event_type], ARRAY[v_stale.ordering_key], ARRAY[v_stale.ordering], ARRAY[v_stale.reference],
        ARRAY[v_stale.event_type = ANY (p_fulfils)], ARRAY[v_stale.digest]);
    EXCEPTION WHEN unique_violation THEN
      v_refused := v_refused || v_stale.seq;
    END;
  END LOOP;

  WITH wanted AS MATERIALIZED (
    SELECT e.seq, e.ordering, w.handler, v_now + min(w.due_ms) AS due_at
      FROM unnest(p_companies, p_ids, p_handlers, p_due_ms) AS w (company, id, handler, due_ms)
      JOIN ${schema}.event e ON e.company = w.company AND e.id = w.id
     WHERE e.raw IS NOT NULL AND e.seq <> ALL (v_refused)
     GROUP BY e.seq, e.ordering, w.handler
  ), existing AS MATERIALIZED (
    SELECT d.event, d.handler, w.due_at FROM wanted w
      JOIN ${schema}.delivery d ON d.event = w.seq AND d.handler = w.handler
     WHERE COALESCE(d.state IN ('pending', 'dead', 'skipped') OR (p_force AND d.state = 'done'), false)
       AND COALESCE(greatest(d.started_at, d.finished_at) <= p_unchanged_since, true)
     ORDER BY d.event, d.handler FOR UPDATE OF d
  ), again AS (
    UPDATE ${schema}.delivery d
       SET state = 'pending', finished_at = NULL,
           history = CASE d.state WHEN 'done' THEN ${historyWith('d.finished_at', `'d'`)} ELSE d.history END,
           attempts = CASE d.state WHEN 'pending' THEN d.attempts ELSE 0 END,
           due_at = CASE d.state WHEN 'pending' THEN least(d.due_at, x.due_at) ELSE x.due_at END
      FROM existing x WHERE d.event = x.event AND d.handler = x.handler
    RETURNING 1
  ), added AS (
    INSERT INTO ${schema}.delivery (event, handler, ordering, state, due_at)
    SELECT w.seq, w.handler, w.ordering, 'pending', w.due_at FROM wanted w
     WHERE NOT EXISTS (SELECT FROM ${schema}.delivery d WHERE d.event = w.seq AND d.handler = w.handler)
     ORDER BY w.seq, w.handler
    ON CONFLICT DO NOTHING
    RETURNING event
  )
  SELECT (SELECT count(*) FROM again), (SELECT array_agg(a.event) FROM added a) INTO v_changed, v_added;
  UPDATE ${schema}.event e SET unhandled = false WHERE e.seq = ANY (v_added) AND e.unhandled;
  RETURN v_changed + COALESCE(cardinality(v_added), 0);
END $redrive$;

-- Locks rows in the order of event and handler, so that the requests of two operators cannot deadlock.
CREATE OR REPLACE FUNCTION ${schema}.skip(p_companies text[], p_ids text[], p_handlers text[]) RETURNS bigint
LANGUAGE plpgsql VOLATILE ${BY_INDEX}
AS $skip$
DECLARE
  v_orderings uuid[];
  v_handlers text[];
  v_events bigint[];
  v_names text[];
  v_skipped bigint;
BEGIN
  ${lockSelected(schema)}
  WITH wanted AS MATERIALIZED (
    SELECT d.event, d.handler, d.state
      FROM unnest(v_events, v_names) AS w (event, handler)
      JOIN ${schema}.delivery d ON d.event = w.event AND d.handler = w.handler
     WHERE COALESCE(d.state IN ('pending', 'dead'), false)
     ORDER BY d.event, d.handler FOR UPDATE OF d
  ), skipped AS (
    UPDATE ${schema}.delivery d
       SET state = 'skipped', waiting = false, crashes = 0, finished_at = ${NOW_MS}, due_at = NULL
      FROM wanted w WHERE d.event = w.event AND d.handler = w.handler
    RETURNING d.ordering, d.handler, w.state
  )
  SELECT count(*), array_agg(s.ordering) FILTER (WHERE s.state = 'pending'),
         array_agg(s.handler) FILTER (WHERE s.state = 'pending')
    INTO v_skipped, v_orderings, v_handlers FROM skipped s;
  PERFORM FROM ${schema}.release_next(v_orderings, v_handlers);
  RETURN v_skipped;
END $skip$;
`;
