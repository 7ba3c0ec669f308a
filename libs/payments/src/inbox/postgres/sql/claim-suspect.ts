import type { ClaimedDelivery, SuspectRequest } from '../../store/inbox-store.js';
import type { ConnectionSource } from '../connection/connection-source.js';
import { CLAIMED_COLUMNS, CLAIMED_TYPES, claimedValues, leased, toClaimed } from './claim.js';
import { isRunning, keyLock } from './ordering.js';
import { BY_INDEX, hidden } from './planner-settings.js';
import { toStored } from './stored-text.js';

/** How many suspects a claim looks at. */
const WINDOW = 50;

/** Leases the longest due suspect. */
export async function claimSuspect(
  source: ConnectionSource,
  schema: string,
  { worker, handlers, alone }: SuspectRequest,
): Promise<ClaimedDelivery | null> {
  const [row] = await source.query(
    `SELECT ${CLAIMED_COLUMNS} FROM ${schema}.claim_suspect($1::uuid, $2::text[], $3::boolean)`,
    [worker, handlers.map(toStored), alone],
  );
  return row === undefined ? null : toClaimed(row);
}

/** With the locks of `claim`. */
export const claimSuspectFunction = (schema: string): string => `
CREATE FUNCTION ${schema}.claim_suspect(p_worker uuid, p_handlers text[], p_alone boolean)
RETURNS TABLE (${CLAIMED_TYPES})
LANGUAGE plpgsql VOLATILE ${BY_INDEX}
AS $suspect$
DECLARE
  v_now CONSTANT timestamptz := clock_timestamp();
  v_one record;
  v_busy boolean;
BEGIN
  FOR v_one IN
    SELECT s.event, s.handler, s.ordering
      FROM unnest(p_handlers) AS h (name)
     CROSS JOIN LATERAL (
       SELECT d.event, d.handler, d.ordering, d.due_at FROM ${schema}.delivery d
        WHERE d.handler = h.name AND d.state = 'pending' AND NOT d.held AND d.crashes > 0
          AND (p_alone OR d.crashes = 1) AND d.due_at <= v_now
        ORDER BY d.due_at, d.event LIMIT ${WINDOW}
     ) s
     WHERE NOT EXISTS (SELECT FROM ${schema}.pause p WHERE p.handler IN (h.name, '*'))
     ORDER BY s.due_at, s.event LIMIT ${WINDOW}
  LOOP
    CONTINUE WHEN v_one.ordering IS NOT NULL
      AND NOT pg_try_advisory_xact_lock(${keyLock('v_one.ordering', 'v_one.handler')});
    v_busy := v_one.ordering IS NOT NULL AND ${isRunning(schema, 'v_one.ordering', 'v_one.handler')};
    PERFORM FROM ${schema}.delivery d
      WHERE d.event = v_one.event AND d.handler = v_one.handler
        AND ${hidden(`d.state = 'pending' AND NOT d.held AND d.crashes > 0 AND (p_alone OR d.crashes = 1)`)}
      FOR UPDATE SKIP LOCKED;
    CONTINUE WHEN NOT FOUND;
    IF v_busy THEN
      UPDATE ${schema}.delivery d SET held = true WHERE d.event = v_one.event AND d.handler = v_one.handler;
      CONTINUE;
    END IF;
    UPDATE ${schema}.delivery d SET ${leased('p_alone')}
     WHERE d.event = v_one.event AND d.handler = v_one.handler;
    RETURN QUERY
    SELECT ${claimedValues(schema)}
      FROM ${schema}.delivery l JOIN ${schema}.event e ON e.seq = l.event
     WHERE l.event = v_one.event AND l.handler = v_one.handler;
    RETURN;
  END LOOP;
END $suspect$;
`;
