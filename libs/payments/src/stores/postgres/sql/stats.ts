import { capped, COUNT_CAP } from '../../../inbox/store/stored-event.js';
import type { InboxStats } from '../../../inbox/store/inbox-store.js';
import type { ConnectionSource } from '../connection/connection-source.js';
import { prepared } from '../connection/database-connection.js';
import { BY_INDEX, NOW_MS } from './schema.js';
import { fromStored } from './stored-rows.js';

/** Counts deliveries and keys with index scans. Each count stops at the cap. */
export async function readStats(source: ConnectionSource, schema: string): Promise<InboxStats> {
  const rows = await source.query(prepared(`SELECT * FROM ${schema}.stats()`));
  const ofKind = (kind: string) => rows.filter((row) => row['o_kind'] === kind);
  const states = ['pending', 'running', 'dead'] as const;
  const value = (kind: string): number => Number(ofKind(kind)[0]?.['o_value'] ?? 0);
  const oldest = ofKind('oldest')[0]?.['o_value'];
  return {
    deliveries: states
      .flatMap((state) =>
        ofKind(state).map((row) => ({
          handler: fromStored(row['o_name']!),
          state,
          ...capped(Number(row['o_value'])),
        })),
      )
      .toSorted((a, b) => (a.handler < b.handler ? -1 : Number(a.handler > b.handler))),
    unhandled: capped(value('unhandled')),
    stale: capped(value('stale')),
    oldestPendingMs: oldest == null ? null : Math.max(0, Math.round(Number(oldest))),
    paused: ofKind('paused').map((row) => fromStored(row['o_name']!)),
  };
}

/**
 * SQL for the number of deliveries of each handler that meet a condition. It reads one index, and there it goes directly
 * from the last counted entry of one handler to the first entry of the next.
 */
const countsOf = (schema: string, condition: string): string => `
  WITH RECURSIVE name AS (
    (SELECT d.handler FROM ${schema}.delivery d WHERE ${condition} ORDER BY d.handler LIMIT 1)
    UNION ALL
    SELECT (SELECT d.handler FROM ${schema}.delivery d WHERE ${condition} AND d.handler > n.handler
             ORDER BY d.handler LIMIT 1)
      FROM name n WHERE n.handler IS NOT NULL
  )
  SELECT n.handler, (
           SELECT count(*) FROM (
             SELECT FROM ${schema}.delivery d WHERE ${condition} AND d.handler = n.handler LIMIT ${COUNT_CAP + 1}) x
         ) AS count
    FROM name n WHERE n.handler IS NOT NULL`;

/** The function `stats` returns a row for each number. */
export const statsFunction = (schema: string): string => `
CREATE FUNCTION ${schema}.stats() RETURNS TABLE (o_kind text, o_name text, o_value double precision)
LANGUAGE plpgsql STABLE ${BY_INDEX}
AS $stats$
BEGIN
  RETURN QUERY
  SELECT 'pending', p.handler, sum(p.count)::float8 FROM (
    SELECT * FROM (${countsOf(schema, `d.state = 'pending' AND NOT d.waiting AND d.crashes = 0`)}) a
    UNION ALL
    SELECT * FROM (${countsOf(schema, `d.state = 'pending' AND NOT d.waiting AND d.crashes > 0`)}) b
    UNION ALL
    SELECT * FROM (${countsOf(schema, 'd.waiting')}) c
  ) p GROUP BY p.handler;
  RETURN QUERY
  SELECT 'dead', c.handler, c.count::float8 FROM (${countsOf(schema, `d.state = 'dead'`)}) c;
  -- Without a cap: the slots of the workers bound the number of running deliveries.
  RETURN QUERY
  SELECT 'running', d.handler, count(*)::float8 FROM ${schema}.delivery d
   WHERE d.state = 'running' GROUP BY d.handler;
  RETURN QUERY
  SELECT CASE WHEN s.stale THEN 'stale' ELSE 'unhandled' END, NULL, (
           SELECT count(*) FROM (
             SELECT FROM ${schema}.event e WHERE e.unhandled AND e.stale = s.stale LIMIT ${COUNT_CAP + 1}) x)::float8
    FROM (VALUES (false), (true)) AS s (stale);
  RETURN QUERY
  SELECT 'oldest', NULL, (${NOW_MS} - e.received_at)::float8 FROM ${schema}.event e
   WHERE e.seq = least(
     (SELECT d.event FROM ${schema}.delivery d
       WHERE d.worker IS NULL AND d.state = 'pending' ORDER BY d.worker, d.event LIMIT 1),
     (SELECT min(d.event) FROM ${schema}.delivery d WHERE d.state = 'running'));
  RETURN QUERY SELECT 'paused', p.handler, NULL::float8 FROM ${schema}.pause p ORDER BY p.handler;
END $stats$;
`;
