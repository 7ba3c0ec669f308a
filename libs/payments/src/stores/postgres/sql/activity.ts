import { countActivity } from '../../../inbox/store/activity.js';
import type { ActivitySlice } from '../../../inbox/store/activity.js';
import type { InboxActivity } from '../../../inbox/store/inbox-store.js';
import type { ConnectionSource } from '../connection/connection-source.js';
import { NOW_MS } from './schema.js';
import { fromStored } from './stored-rows.js';

/** How many events one statement reads. */
const SLICE = 10_000;

/** See `InboxStore.activity`. */
export async function readActivity(
  source: ConnectionSource,
  schema: string,
  minutes: number,
  bodiesMs: number,
): Promise<InboxActivity> {
  const [row] = await source.query(`SELECT ${NOW_MS} AS now_ms`);
  const now = Number(row!['now_ms']);
  return countActivity(minutes, now, now - bodiesMs, (before, fromMinute) =>
    readSlice(source, schema, before, fromMinute),
  );
}

async function readSlice(
  source: ConnectionSource,
  schema: string,
  before: number,
  fromMinute: number,
): Promise<ActivitySlice> {
  const [found] = await source.query(
    `SELECT e.seq, e.received_at AS received_ms, count(*) OVER () AS events FROM (
       SELECT e.seq, e.received_at FROM ${schema}.event e WHERE e.seq < $1::bigint ORDER BY e.seq DESC LIMIT ${SLICE}
     ) e ORDER BY e.seq LIMIT 1`,
    [before],
  );
  if (found === undefined) return { parts: [], events: 0, oldest: null };
  const seq = Number(found['seq']);
  const rows = await source.query(partsText(schema), [seq, before, fromMinute]);
  return {
    events: Number(found['events']),
    oldest: { seq, receivedMs: Number(found['received_ms']) },
    parts: rows.map((row) => ({
      minute: Number(row['minute']),
      handler: fromStored(row['handler']!),
      received: Number(row['received']),
      failed: Number(row['failed']),
      dead: Number(row['dead']),
      tookMs: JSON.parse(row['took_ms'] ?? '[]') as number[],
    })),
  };
}

/** Counts failed attempts in the histories, because a delivery may have failed in one minute and again later. */
const partsText = (schema: string): string => {
  // A range of each primary key: the planner could otherwise read all deliveries.
  const events = 'e.seq >= $1::bigint AND e.seq < $2::bigint';
  const deliveries = 'd.event >= $1::bigint AND d.event < $2::bigint';
  const both = `${schema}.delivery d JOIN ${schema}.event e ON e.seq = d.event WHERE ${events} AND ${deliveries}`;
  const minute = (column: string): string => `(${column} / 60000)::integer`;
  const took = 'greatest(0, d.finished_at - e.received_at)';
  return `
SELECT p.minute, p.handler, sum(p.received) AS received, sum(p.failed) AS failed, sum(p.dead) AS dead,
       json_agg(p.took_ms) FILTER (WHERE p.took_ms IS NOT NULL) AS took_ms
  FROM (
    SELECT ${minute('e.received_at')} AS minute, '' AS handler, 1 AS received, 0 AS failed, 0 AS dead,
           NULL::bigint AS took_ms
      FROM ${schema}.event e WHERE ${events}
    UNION ALL
    SELECT ${minute('e.received_at')}, d.handler, 1, 0, 0, NULL FROM ${both}
    UNION ALL
    SELECT ${minute('d.finished_at')}, d.handler, 0, 0, (d.state = 'dead')::integer,
           CASE d.state WHEN 'done' THEN ${took} END
      FROM ${both} AND d.state IN ('done', 'dead')
    UNION ALL
    SELECT floor(((h.attempt ->> 1)::float8 + (h.attempt ->> 2)::float8) / 60000)::integer, d.handler, 0, 1, 0, NULL
      FROM ${schema}.delivery d CROSS JOIN LATERAL jsonb_array_elements(d.history) AS h (attempt)
     WHERE ${deliveries} AND h.attempt ->> 3 <> 'd'
  ) p WHERE p.minute >= $3::integer GROUP BY p.minute, p.handler`;
};
