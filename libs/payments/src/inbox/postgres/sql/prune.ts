import type { InboxStore } from '../../inbox-store.js';
import type { ConnectionSource } from '../connection/connection-source.js';
import { KEPT_MINUTES } from './activity.js';
import { asInterval } from './planner-settings.js';

/** Deletes what is finished and old, in batches that nobody has to wait for. Returns how many events it changed. */
export async function prune(
  source: ConnectionSource,
  schema: string,
  { bodiesMs, tombstonesMs, limit }: Parameters<InboxStore['prune']>[0],
): Promise<number> {
  const bodies = await pruneBodies(source, schema, bodiesMs, limit);
  const left = limit - bodies;
  const tombstones = left > 0 ? await pruneTombstones(source, schema, tombstonesMs, left) : 0;
  await source.query(
    `DELETE FROM ${schema}.activity WHERE minute < clock_timestamp() - ${KEPT_MINUTES + 2} * interval '1 minute'`,
  );
  return bodies + tombstones;
}

/**
 * Two statements: the first locks the events, the second reads their deliveries after that. With one, a delivery that an
 * operator redrives in between would be lost.
 */
async function pruneBodies(
  source: ConnectionSource,
  schema: string,
  olderMs: number,
  limit: number,
): Promise<number> {
  return source.transaction(async (connection) => {
    const { rows } = await connection.run(
      `SELECT e.seq FROM ${schema}.event e
        WHERE e.raw IS NOT NULL AND e.received_at < ${before('$1')} AND ${isFinished(schema)}
        ORDER BY e.received_at LIMIT $2 FOR UPDATE SKIP LOCKED`,
      [olderMs, limit],
    );
    if (rows.length === 0) return 0;
    const pruned = await connection.run(
      `WITH finished AS MATERIALIZED (
         SELECT e.seq FROM ${schema}.event e WHERE e.seq = ANY ($1::bigint[]) AND ${isFinished(schema)}
       ), gone AS (
         DELETE FROM ${schema}.delivery d USING finished f WHERE d.event = f.seq
         RETURNING d.event, d.handler, d.state
       ), done AS (
         SELECT event, array_agg(handler) AS handlers FROM gone WHERE state = 'done' GROUP BY event
       )
       UPDATE ${schema}.event e SET raw = NULL, headers = NULL, unhandled = false, done_by = d.handlers
         FROM finished f LEFT JOIN done d ON d.event = f.seq
        WHERE e.seq = f.seq
       RETURNING e.seq`,
      [rows.map(({ seq }) => seq!)],
    );
    return pruned.rows.length;
  });
}

async function pruneTombstones(
  source: ConnectionSource,
  schema: string,
  olderMs: number,
  limit: number,
): Promise<number> {
  const rows = await source.query(
    `DELETE FROM ${schema}.event WHERE seq IN (
       SELECT seq FROM ${schema}.event
        WHERE raw IS NULL AND received_at < ${before('$1')} AND occurred_at < ${before('$1')}
        ORDER BY received_at, seq LIMIT $2 FOR UPDATE SKIP LOCKED)
     RETURNING seq`,
    [olderMs, limit],
  );
  return rows.length;
}

const before = (ms: string): string => `clock_timestamp() - ${asInterval(`${ms}::float8`)}`;

/** Counted instead of `NOT EXISTS`, for which the planner may read all deliveries. */
const isFinished = (schema: string): string => `0 = (
  SELECT count(*) FROM ${schema}.delivery d WHERE d.event = e.seq AND d.state NOT IN ('done', 'skipped'))`;
