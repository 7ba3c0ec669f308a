import type { DeliverySelection } from '../../store/inbox-store.js';
import type { ConnectionSource } from '../connection/connection-source.js';
import { BY_INDEX, NOW } from './planner-settings.js';
import { toStored } from './stored-text.js';

/** Marks pending and dead deliveries skipped. */
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

/** Companies, ids and handlers: one place for each delivery. */
export function columnsOf(
  selections: readonly DeliverySelection[],
): [string[], string[], string[]] {
  const rows = selections.flatMap(({ company, id, handlers }) =>
    handlers.map((handler) => [company, id, handler].map(toStored)),
  );
  return [rows.map((row) => row[0]!), rows.map((row) => row[1]!), rows.map((row) => row[2]!)];
}

/** Finds the selected events and handlers, each pair once, and takes the locks of their keys; see `ordering.ts`. */
export const lockSelected = (schema: string): string => `
  SELECT array_agg(s.seq), array_agg(s.handler), array_agg(s.ordering) INTO v_events, v_names, v_orderings
    FROM (SELECT DISTINCT e.seq, w.handler, e.ordering
            FROM unnest(p_companies, p_ids, p_handlers) AS w (company, id, handler)
            JOIN ${schema}.event e ON e.company = w.company AND e.id = w.id) s;
  PERFORM ${schema}.lock_keys(v_orderings, v_names);`;

/** Rows are locked in the order of event and handler, so that two operators cannot wait for each other. */
export const skipFunction = (schema: string): string => `
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
  ${lockSelected(schema)}
  WITH wanted AS MATERIALIZED (
    SELECT d.event, d.handler, d.state
      FROM unnest(v_events, v_names) AS w (event, handler)
      JOIN ${schema}.delivery d ON d.event = w.event AND d.handler = w.handler
     WHERE COALESCE(d.state IN ('pending', 'dead'), false)
     ORDER BY d.event, d.handler FOR UPDATE OF d
  ), skipped AS (
    UPDATE ${schema}.delivery d
       SET state = 'skipped', held = false, crashes = 0, finished_at = ${NOW}, due_at = NULL
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
