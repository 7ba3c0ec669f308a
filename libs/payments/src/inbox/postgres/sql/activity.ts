import type { ActivityCounts, ActivityMinute } from '../../store/inbox-store.js';
import type { ConnectionSource } from '../connection/connection-source.js';
import type { ResultRow } from '../connection/database-connection.js';
import { asInterval, epochMs } from './schema.js';
import { fromStored, toDate } from './stored-rows.js';

/** How many minutes are stored at most: a day. */
export const KEPT_MINUTES = 1440;

const MINUTE_MS = 60_000;
/** How long after its end a minute is closed, in milliseconds. */
const CLOSING_MS = 10_000;
/** How long a summary may take, in milliseconds. After a long stop it covers a whole day. */
const TIMEOUT_MS = 120_000;
/** The handler name of the rows that count all handlers together. */
const ALL_HANDLERS = '';

const NO_ACTIVITY: ActivityCounts = {
  received: 0,
  done: 0,
  failed: 0,
  dead: 0,
  p50Ms: null,
  p95Ms: null,
};

/** Writes the activity of the closed minutes. Does nothing while another process writes it. */
export async function summarize(
  source: ConnectionSource,
  schema: string,
  lock: string,
): Promise<void> {
  await source.transaction(async (connection) => {
    const run = async (text: string, values: (string | number)[] = []): Promise<ResultRow[]> =>
      (await connection.run(text, values, TIMEOUT_MS)).rows;
    await run(`SET LOCAL statement_timeout = ${TIMEOUT_MS}`);
    const [lockRow] = await run(`SELECT pg_try_advisory_xact_lock(${lock}) AS locked`);
    if (lockRow!['locked'] !== 't') return;
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

/** Returns the last minutes that {@link summarize} covered. */
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
    const handlers = [...counts].filter(([handler]) => handler !== ALL_HANDLERS);
    return {
      startsAt: toDate(startsAt),
      total: counts.get(ALL_HANDLERS) ?? NO_ACTIVITY,
      handlers: Object.fromEntries(handlers),
    };
  });
}

function toCounts(row: ResultRow): ActivityCounts {
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

/** The range to summarize: from the last two minutes that were written to the last closed minute. */
const rangeText = (schema: string): string => `
SELECT ${epochMs('r.until')} AS end_ms,
       ${epochMs(`greatest(r.until - ${KEPT_MINUTES} * interval '1 minute', r.summarized_to - interval '2 minutes')`)} AS start_ms
  FROM (SELECT date_trunc('minute', clock_timestamp() - ${asInterval(String(CLOSING_MS))}, 'UTC') AS until,
               m.summarized_to FROM ${schema}.summary m) r`;

/** Summarizes a range. Its bounds are in milliseconds since the epoch, and start and end with a minute of UTC. */
const summaryText = (schema: string): string => `
WITH bounds AS (
  SELECT $1::float8 AS start_ms, $2::float8 AS end_ms,
         to_timestamp($1::float8 / 1000) AS starts, to_timestamp($2::float8 / 1000) AS ends
), recent AS MATERIALIZED (
  -- No upper bound: ended_at is the end of the last attempt, and earlier attempts of the delivery may be in the range.
  SELECT d.event, d.handler, d.state, d.finished_at, d.history
    FROM ${schema}.delivery d, bounds b WHERE d.ended_at >= b.starts
), entry AS (
  SELECT e.received_at AS at, d.handler, 1 AS received, 0 AS done, 0 AS failed, 0 AS dead, NULL::bigint AS took_ms
    FROM ${schema}.event e JOIN ${schema}.delivery d ON d.event = e.seq, bounds b
   WHERE e.received_at >= b.starts AND e.received_at < b.ends
  UNION ALL
  SELECT f.finished_at, f.handler, 0, (f.state = 'done')::integer, 0, (f.state = 'dead')::integer,
         CASE WHEN f.state = 'done'
              THEN greatest(0, round(${epochMs('f.finished_at - e.received_at')}))::bigint END
    FROM recent f JOIN ${schema}.event e ON e.seq = f.event WHERE f.state IN ('done', 'dead')
  UNION ALL
  SELECT to_timestamp(((h.attempt ->> 1)::float8 + (h.attempt ->> 2)::float8) / 1000), f.handler, 0, 0, 1, 0, NULL
    FROM recent f CROSS JOIN LATERAL jsonb_array_elements(f.history) AS h (attempt) WHERE h.attempt ->> 3 <> 'd'
), sums AS (
  -- One row for each minute and handler, and one for each minute.
  SELECT n.minute, COALESCE(n.handler, '${ALL_HANDLERS}') AS handler, sum(n.received) AS received, sum(n.done) AS done,
         sum(n.failed) AS failed, sum(n.dead) AS dead,
         percentile_disc(0.5) WITHIN GROUP (ORDER BY n.took_ms) AS p50_ms,
         percentile_disc(0.95) WITHIN GROUP (ORDER BY n.took_ms) AS p95_ms
    FROM (SELECT date_trunc('minute', a.at, 'UTC') AS minute, a.* FROM entry a, bounds b
           WHERE a.at >= b.starts AND a.at < b.ends) n
   GROUP BY GROUPING SETS ((n.minute, n.handler), (n.minute))
), events AS (
  SELECT date_trunc('minute', e.received_at, 'UTC') AS minute, count(*) AS received
    FROM ${schema}.event e, bounds b
   WHERE e.received_at >= b.starts AND e.received_at < b.ends GROUP BY 1
)
INSERT INTO ${schema}.activity (minute, handler, received, done, failed, dead, p50_ms, p95_ms)
SELECT s.minute, s.handler, s.received, s.done, s.failed, s.dead, s.p50_ms, s.p95_ms
  FROM sums s WHERE s.handler <> '${ALL_HANDLERS}'
UNION ALL
-- An event is counted once, however many deliveries it has.
SELECT COALESCE(s.minute, e.minute), '${ALL_HANDLERS}', COALESCE(e.received, 0), COALESCE(s.done, 0), COALESCE(s.failed, 0),
       COALESCE(s.dead, 0), s.p50_ms, s.p95_ms
  FROM (SELECT * FROM sums WHERE handler = '${ALL_HANDLERS}') s FULL JOIN events e ON e.minute = s.minute`;
