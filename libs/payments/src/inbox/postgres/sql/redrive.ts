import type { DeliverySelection } from '../../store/inbox-store.js';
import type { ConnectionSource } from '../connection/connection-source.js';
import { asInterval, BY_INDEX, IS_LISTED, STORE_NOW } from './schema.js';
import { toStored } from './stored-rows.js';

/** Makes deliveries due again, and returns how many it changed or added. */
export async function redrive(
  source: ConnectionSource,
  schema: string,
  selections: readonly DeliverySelection[],
  { force, dueInMs }: { readonly force: boolean; readonly dueInMs: readonly number[] },
): Promise<number> {
  const columns = columnsOf(selections);
  if (columns[0].length === 0) return 0;
  const due = selections.flatMap(({ handlers }, index) =>
    handlers.map(() => Math.max(0, dueInMs[index] ?? 0)),
  );
  const text = `SELECT ${schema}.redrive($1::text[], $2::text[], $3::text[], $4::float8[], $5::boolean, false) AS changed`;
  const [row] = await source.query(text, [...columns, due, force]);
  return Number(row!['changed']);
}

/** Marks pending and dead deliveries as skipped, and returns how many. */
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
 * SQL that finds the selected events and handlers, each pair once, and takes their locks: rule 4 in `ordering.ts`.
 *
 * @param condition SQL, for the events `e` to find
 */
const lockSelected = (schema: string, condition: string): string => `
  SELECT array_agg(s.seq), array_agg(s.handler), array_agg(s.ordering) INTO v_events, v_names, v_orderings
    FROM (SELECT DISTINCT e.seq, w.handler, e.ordering
            FROM unnest(p_companies, p_ids, p_handlers) AS w (company, id, handler)
            JOIN ${schema}.event e ON e.company = w.company AND e.id = w.id
           WHERE ${condition}) s;
  PERFORM ${schema}.lock_keys(v_orderings, v_names);`;

/** SQL: whether a redrive changes the deliveries of an event `e`. Only a redrive of polls changes polls. */
const IS_REDRIVEN = `(e.source = 'expectation') = p_polls`;

/**
 * The function `redrive` locks the events before the deliveries: it waits for an event that is being pruned, and then
 * ignores it. It locks all rows in order, so that the requests of two operators cannot deadlock.
 */
const redriveFunction = (schema: string): string => `
CREATE FUNCTION ${schema}.redrive(p_companies text[], p_ids text[], p_handlers text[], p_due_ms double precision[],
  p_force boolean, p_polls boolean) RETURNS bigint
LANGUAGE plpgsql VOLATILE ${BY_INDEX}
AS $redrive$
DECLARE
  v_now CONSTANT timestamptz := ${STORE_NOW};
  v_orderings uuid[];
  v_events bigint[];
  v_names text[];
  v_changed bigint;
  v_added bigint[];
BEGIN
  ${lockSelected(schema, IS_REDRIVEN)}
  PERFORM FROM ${schema}.event e WHERE e.seq = ANY (v_events) ORDER BY e.seq FOR NO KEY UPDATE;

  WITH wanted AS MATERIALIZED (
    SELECT e.seq, e.ordering, e.occurred_at, w.handler, v_now + ${asInterval('min(w.due_ms)')} AS due_at
      FROM unnest(p_companies, p_ids, p_handlers, p_due_ms) AS w (company, id, handler, due_ms)
      JOIN ${schema}.event e ON e.company = w.company AND e.id = w.id
     WHERE e.raw IS NOT NULL AND ${IS_REDRIVEN}
     GROUP BY e.seq, e.ordering, e.occurred_at, w.handler
  ), existing AS MATERIALIZED (
    SELECT d.event, d.handler, w.due_at FROM wanted w
      JOIN ${schema}.delivery d ON d.event = w.seq AND d.handler = w.handler
     WHERE COALESCE(d.state IN ('pending', 'dead', 'skipped') OR (p_force AND d.state = 'done'), false)
     ORDER BY d.event, d.handler FOR UPDATE OF d
  ), again AS (
    UPDATE ${schema}.delivery d
       SET state = 'pending', finished_at = NULL,
           attempts = CASE d.state WHEN 'pending' THEN d.attempts ELSE 0 END,
           due_at = CASE d.state WHEN 'pending' THEN least(d.due_at, x.due_at) ELSE x.due_at END
      FROM existing x WHERE d.event = x.event AND d.handler = x.handler
    RETURNING 1
  ), added AS (
    INSERT INTO ${schema}.delivery (event, handler, ordering, occurred_at, state, due_at)
    SELECT w.seq, w.handler, w.ordering, w.occurred_at, 'pending', w.due_at FROM wanted w
     WHERE NOT EXISTS (SELECT FROM ${schema}.delivery d WHERE d.event = w.seq AND d.handler = w.handler)
     ORDER BY w.seq, w.handler
    ON CONFLICT DO NOTHING
    RETURNING event
  )
  SELECT (SELECT count(*) FROM again), (SELECT array_agg(a.event) FROM added a) INTO v_changed, v_added;
  UPDATE ${schema}.event e SET unhandled = false WHERE e.seq = ANY (v_added) AND e.unhandled;
  RETURN v_changed + COALESCE(cardinality(v_added), 0);
END $redrive$;
`;

/** The function `skip` locks rows in the order of event and handler, so that the requests of two operators cannot deadlock. */
const skipFunction = (schema: string): string => `
CREATE FUNCTION ${schema}.skip(p_companies text[], p_ids text[], p_handlers text[]) RETURNS bigint
LANGUAGE plpgsql VOLATILE ${BY_INDEX}
AS $skip$
DECLARE
  v_orderings uuid[];
  v_handlers text[];
  v_events bigint[];
  v_names text[];
  v_skipped bigint;
BEGIN
  ${lockSelected(schema, IS_LISTED)}
  WITH wanted AS MATERIALIZED (
    SELECT d.event, d.handler, d.state
      FROM unnest(v_events, v_names) AS w (event, handler)
      JOIN ${schema}.delivery d ON d.event = w.event AND d.handler = w.handler
     WHERE COALESCE(d.state IN ('pending', 'dead'), false)
     ORDER BY d.event, d.handler FOR UPDATE OF d
  ), skipped AS (
    UPDATE ${schema}.delivery d
       SET state = 'skipped', waiting = false, crashes = 0, finished_at = ${STORE_NOW}, due_at = NULL
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

/** The functions `redrive` and `skip`. */
export const redriveFunctions = (schema: string): string =>
  redriveFunction(schema) + skipFunction(schema);
