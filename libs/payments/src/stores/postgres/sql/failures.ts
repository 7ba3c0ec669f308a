import { MAX_FAILED } from '../../../inbox/store/event-summary.js';
import type { FailureCount, InboxStore } from '../../../inbox/store/inbox-store.js';
import type { ConnectionSource } from '../connection/connection-source.js';
import { prepared } from '../connection/database-connection.js';
import { BY_INDEX, HAS_FAILED } from './schema.js';
import { fromStored, toDate } from './stored-rows.js';

/** Counts the failed deliveries by handler, state and error. */
export async function readFailures(
  source: ConnectionSource,
  schema: string,
): ReturnType<InboxStore['failures']> {
  const rows = await source.query(prepared(`SELECT * FROM ${schema}.failures()`));
  const counts = rows.map((row): FailureCount => ({
    handler: fromStored(row['o_handler']!),
    error: fromStored(row['o_error']!),
    state: row['o_dead'] === 't' ? 'dead' : 'retrying',
    count: Number(row['o_count']),
    oldestAt: toDate(row['o_oldest_ms']!),
    newestAt: toDate(row['o_newest_ms']!),
    company: fromStored(row['o_company']!),
    eventId: fromStored(row['o_id']!),
  }));
  return { counts, more: rows[0]?.['o_more'] === 't' };
}

/** The function `failures` reads the failed deliveries of the newest events with one index. */
export const failuresFunction = (schema: string): string => `
CREATE FUNCTION ${schema}.failures()
RETURNS TABLE (o_handler text, o_dead boolean, o_error text, o_count bigint, o_oldest_ms bigint, o_newest_ms bigint,
  o_company text, o_id text, o_more boolean)
LANGUAGE plpgsql STABLE ${BY_INDEX}
AS $failures$
BEGIN
  RETURN QUERY
  SELECT g.handler, g.dead, g.last_error, g.count, g.oldest_ms, g.newest_ms, e.company, e.id, ${MAX_FAILED} < (
           SELECT count(*) FROM (SELECT FROM ${schema}.delivery d WHERE ${HAS_FAILED} LIMIT ${MAX_FAILED + 1}) all_failed)
    FROM (
      SELECT f.handler, f.dead, f.last_error, count(*), max(f.event) AS event,
             min(f.failed_at) AS oldest_ms, max(f.failed_at) AS newest_ms
        FROM (
          SELECT d.handler, d.state = 'dead' AS dead, d.last_error, d.failed_at, d.event FROM ${schema}.delivery d
           WHERE ${HAS_FAILED} ORDER BY d.event DESC LIMIT ${MAX_FAILED}
        ) f GROUP BY f.handler, f.dead, f.last_error
    ) g JOIN ${schema}.event e ON e.seq = g.event;
END $failures$;
`;
