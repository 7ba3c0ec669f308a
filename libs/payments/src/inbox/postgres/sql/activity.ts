import type { ActivityCounts, ActivityMinute } from '../../store/inbox-store.js';
import type { ConnectionSource } from '../connection/connection-source.js';
import type { Row } from '../connection/database-connection.js';
import { asInterval, epochMs } from './planner-settings.js';
import { toDate } from './stored-rows.js';
import { fromStored } from './stored-text.js';

/** How many minutes are written and read at most: a day. */
export const KEPT_MINUTES = 1440;

const MINUTE_MS = 60_000;
/** How long after its end a minute is closed. */
const CLOSING_MS = 10_000;
/** After a long stop, a day is summarized at once. */
const TIMEOUT_MS = 120_000;
/** Handler of the rows that count all handlers together. */
const ALL = '';

const NOTHING: ActivityCounts = {
  received: 0,
  done: 0,
  failed: 0,
  dead: 0,
  p50Ms: null,
  p95Ms: null,
};

/** Writes the minutes that are closed. Does nothing while another process writes them. */
export async function summarize(
  source: ConnectionSource,
  schema: string,
  lock: string,
): Promise<void> {
  await source.transaction(async (connection) => {
    const run = async (text: string, values: (string | number)[] = []): Promise<Row[]> =>
      (await connection.run(text, values, TIMEOUT_MS)).rows;
    await run(`SET LOCAL statement_timeout = ${TIMEOUT_MS}`);
    const [locked] = await run(`SELECT pg_try_advisory_xact_lock(${lock}) AS free`);
    if (locked!['free'] !== 't') return;
    const [range] = await run(rangeText(schema));
    const bounds = [range!['start_ms']!, range!['end_ms']!];
    await run(
      `DELETE FROM ${schema}.activity
        WHERE minute >= to_timestamp($1::float8 / 1000) AND minute < to_timestamp($2::float8 / 1000)`,
      bounds,
    );
    await run(summaryText(schema), bounds);
    await run(`UPDATE ${schema}.summary SET summarized_to = to_timestamp($1::float8 / 1000)`, [
      range!['end_ms']!,
    ]);
  });
}

/** The last minutes that {@link summarize} covered. */
export async function readActivity(
  source: ConnectionSource,
  schema: string,
  minutes: number,
): Promise<ActivityMinute[]> {
  const rows = await source.query(
    `SELECT ${epochMs('m.summarized_to')} AS end_ms, ${epochMs('a.minute')} AS minute_ms,
            a.handler, a.received, a.done, a.failed, a.dead, a.p50_ms, a.p95_ms
       FROM ${schema}.summary m LEFT JOIN ${schema}.activity a
         ON a.minute < m.summarized_to AND a.minute >= m.summarized_to - $1::integer * interval '1 minute'
      WHERE m.summarized_to IS NOT NULL`,
    [minutes],
  );
  if (rows.length === 0) return [];
  const end = Math.round(Number(rows[0]!['end_ms']));
  const byMinute = new Map<number, Map<string, ActivityCounts>>();
  for (const row of rows.filter(({ minute_ms }) => minute_ms !== null)) {
    const minute = Math.round(Number(row['minute_ms']));
    const byHandler = byMinute.get(minute) ?? new Map<string, ActivityCounts>();
    byMinute.set(minute, byHandler.set(fromStored(row['handler']!), toCounts(row)));
  }
  return Array.from({ length: minutes }, (_, index) => {
    const startsAt = end - (minutes - index) * MINUTE_MS;
    const counts = byMinute.get(startsAt) ?? new Map<string, ActivityCounts>();
    const handlers = [...counts].filter(([handler]) => handler !== ALL);
    return {
      startsAt: toDate(startsAt),
      total: counts.get(ALL) ?? NOTHING,
      handlers: Object.fromEntries(handlers),
    };
  });
}

function toCounts(row: Row): ActivityCounts {
  const ms = (value: string | null | undefined): number | null =>
    value == null ? null : Number(value);
  return {
    received: Number(row['received']),
    done: Number(row['done']),
    failed: Number(row['failed']),
    dead: Number(row['dead']),
    p50Ms: ms(row['p50_ms']),
    p95Ms: ms(row['p95_ms']),
  };
}

/** From the last two minutes that are written to the last that is closed. */
const rangeText = (schema: string): string => `
SELECT ${epochMs('r.until')} AS end_ms,
       ${epochMs(`greatest(r.until - ${KEPT_MINUTES} * interval '1 minute', r.summarized_to - interval '2 minutes')`)} AS start_ms
  FROM (SELECT date_trunc('minute', clock_timestamp() - ${asInterval(String(CLOSING_MS))}, 'UTC') AS until,
               m.summarized_to FROM ${schema}.summary m) r`;

/** In milliseconds since the epoch, whose minutes are those of UTC. */
const summaryText = (schema: string): string => `
WITH bounds AS (
  SELECT $1::float8 AS start_ms, $2::float8 AS end_ms,
         to_timestamp($1::float8 / 1000) AS starts, to_timestamp($2::float8 / 1000) AS ends
), ended AS MATERIALIZED (
  -- Later attempts of the same delivery have moved the end of the last one, so there is no upper bound.
  SELECT d.event, d.handler, d.state, d.finished_at, d.history
    FROM ${schema}.delivery d, bounds b WHERE d.ended_at >= b.starts
), noted AS (
  SELECT e.received_at AS at, d.handler, 1 AS received, 0 AS done, 0 AS failed, 0 AS dead, NULL::bigint AS took_ms
    FROM ${schema}.event e JOIN ${schema}.delivery d ON d.event = e.seq, bounds b
   WHERE e.received_at >= b.starts AND e.received_at < b.ends
  UNION ALL
  SELECT f.finished_at, f.handler, 0, (f.state = 'done')::integer, 0, (f.state = 'dead')::integer,
         CASE WHEN f.state = 'done'
              THEN greatest(0, round(${epochMs('f.finished_at - e.received_at')}))::bigint END
    FROM ended f JOIN ${schema}.event e ON e.seq = f.event WHERE f.state IN ('done', 'dead')
  UNION ALL
  SELECT to_timestamp(((h.entry ->> 1)::float8 + (h.entry ->> 2)::float8) / 1000), f.handler, 0, 0, 1, 0, NULL
    FROM ended f CROSS JOIN LATERAL jsonb_array_elements(f.history) AS h (entry) WHERE h.entry ->> 3 <> 'd'
), sums AS (
  SELECT n.minute, COALESCE(n.handler, '${ALL}') AS handler, sum(n.received) AS received, sum(n.done) AS done, sum(n.failed) AS failed, sum(n.dead) AS dead,
         percentile_disc(0.5) WITHIN GROUP (ORDER BY n.took_ms) AS p50_ms,
         percentile_disc(0.95) WITHIN GROUP (ORDER BY n.took_ms) AS p95_ms
    FROM (SELECT date_trunc('minute', a.at, 'UTC') AS minute, a.* FROM noted a, bounds b
           WHERE a.at >= b.starts AND a.at < b.ends) n
   GROUP BY GROUPING SETS ((n.minute, n.handler), (n.minute))
), events AS (
  SELECT date_trunc('minute', e.received_at, 'UTC') AS minute, count(*) AS received
    FROM ${schema}.event e, bounds b WHERE e.received_at >= b.starts AND e.received_at < b.ends GROUP BY 1
)
INSERT INTO ${schema}.activity (minute, handler, received, done, failed, dead, p50_ms, p95_ms)
SELECT s.minute, s.handler, s.received, s.done, s.failed, s.dead, s.p50_ms, s.p95_ms
  FROM sums s WHERE s.handler <> '${ALL}'
UNION ALL
-- An event is counted once, however many deliveries it has.
SELECT COALESCE(s.minute, e.minute), '${ALL}', COALESCE(e.received, 0), COALESCE(s.done, 0), COALESCE(s.failed, 0),
       COALESCE(s.dead, 0), s.p50_ms, s.p95_ms
  FROM (SELECT * FROM sums WHERE handler = '${ALL}') s FULL JOIN events e ON e.minute = s.minute`;
