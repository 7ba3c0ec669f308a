import type { DeliverySelection } from '../../store/inbox-store.js';
import type { ConnectionSource } from '../connection/connection-source.js';
import { asInterval, BY_INDEX, NOW } from './planner-settings.js';
import { columnsOf, lockSelected } from './skip.js';

/** Makes deliveries due again. */
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
  const text = `SELECT ${schema}.redrive($1::text[], $2::text[], $3::text[], $4::float8[], $5::boolean) AS changed`;
  const [row] = await source.query(text, [...columns, due, force]);
  return Number(row!['changed']);
}

/**
 * Locks the events before the deliveries, against pruning: it waits for an event that is being pruned, and ignores it
 * then. All rows are locked in order, so that two operators cannot wait for each other.
 */
export const redriveFunction = (schema: string): string => `
CREATE FUNCTION ${schema}.redrive(p_companies text[], p_ids text[], p_handlers text[], p_due_ms double precision[],
  p_force boolean) RETURNS bigint
LANGUAGE plpgsql VOLATILE ${BY_INDEX}
AS $redrive$
DECLARE
  v_now CONSTANT timestamptz := ${NOW};
  v_orderings uuid[];
  v_events bigint[];
  v_names text[];
  v_again bigint;
  v_added bigint[];
BEGIN
  ${lockSelected(schema)}
  PERFORM FROM ${schema}.event e WHERE e.seq = ANY (v_events) ORDER BY e.seq FOR NO KEY UPDATE;

  WITH wanted AS MATERIALIZED (
    SELECT e.seq, e.ordering, e.occurred_at, w.handler, v_now + ${asInterval('min(w.due_ms)')} AS due_at
      FROM unnest(p_companies, p_ids, p_handlers, p_due_ms) AS w (company, id, handler, due_ms)
      JOIN ${schema}.event e ON e.company = w.company AND e.id = w.id
     WHERE e.raw IS NOT NULL
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
  SELECT (SELECT count(*) FROM again), (SELECT array_agg(a.event) FROM added a) INTO v_again, v_added;
  UPDATE ${schema}.event e SET unhandled = false WHERE e.seq = ANY (v_added) AND e.unhandled;
  RETURN v_again + COALESCE(cardinality(v_added), 0);
END $redrive$;
`;
