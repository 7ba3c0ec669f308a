import type { ConnectionSource } from './connection.source.js';

/** Forgets what is finished and old, in batches that nobody has to wait for. */
export class InboxPruner {
  constructor(
    private readonly source: ConnectionSource,
    private readonly schema: string,
  ) {}

  async prune(request: {
    readonly bodiesMs: number;
    readonly tombstonesMs: number;
    readonly limit: number;
  }): Promise<number> {
    const bodies = await this.#bodies(request.bodiesMs, request.limit);
    const left = request.limit - bodies;
    const tombstones = left > 0 ? await this.#tombstones(request.tombstonesMs, left) : 0;
    await this.#foldTallies();
    return bodies + tombstones;
  }

  /**
   * Two statements: the first locks the events, the second looks at their deliveries with what it sees after
   * that. With one, a delivery that an operator redrives in between would be lost.
   */
  async #bodies(olderMs: number, limit: number): Promise<number> {
    const { schema } = this;
    return this.source.transaction(async (connection) => {
      const { rows } = await connection.run(
        `SELECT e.seq FROM ${schema}.events e
          WHERE e.raw IS NOT NULL AND e.received_at < ${before('$1')}
            AND ${finished(schema)}
          ORDER BY e.received_at LIMIT $2 FOR UPDATE SKIP LOCKED`,
        [olderMs, limit],
      );
      if (rows.length === 0) return 0;
      const seqs = rows.map(({ seq }) => seq!);
      const pruned = await connection.run(
        `WITH finished AS MATERIALIZED (
           SELECT e.seq FROM ${schema}.events e
            WHERE e.seq = ANY ($1::bigint[]) AND ${finished(schema)}
         ), gone AS (
           DELETE FROM ${schema}.deliveries d USING finished f WHERE d.event = f.seq
           RETURNING d.event, d.handler, d.state
         ), done AS (
           SELECT event, array_agg(handler) AS handlers FROM gone WHERE state = 'done' GROUP BY event
         )
         UPDATE ${schema}.events e SET raw = NULL, headers = NULL, unhandled = false, done_by = d.handlers
           FROM finished f LEFT JOIN done d ON d.event = f.seq
          WHERE e.seq = f.seq
         RETURNING e.seq`,
        [seqs],
      );
      return pruned.rows.length;
    });
  }

  async #tombstones(olderMs: number, limit: number): Promise<number> {
    const { schema } = this;
    const rows = await this.source.query(
      `DELETE FROM ${schema}.events WHERE seq IN (
         SELECT seq FROM ${schema}.events
          WHERE raw IS NULL AND received_at < ${before('$1')} AND occurred_at < ${before('$1')}
          ORDER BY received_at, seq LIMIT $2 FOR UPDATE SKIP LOCKED)
       RETURNING seq`,
      [olderMs, limit],
    );
    return rows.length;
  }

  async #foldTallies(): Promise<void> {
    await foldTallies(this.source, this.schema);
  }
}

/** Adds up rows of differences, those that nobody else is at, so that a sum stays quick to make. */
export async function foldTallies(source: ConnectionSource, schema: string): Promise<void> {
  await source.query(
    `WITH gone AS (
       DELETE FROM ${schema}.tallies WHERE ctid = ANY (ARRAY(
         SELECT ctid FROM ${schema}.tallies LIMIT 50000 FOR UPDATE SKIP LOCKED))
       RETURNING handler, state, delta
     )
     INSERT INTO ${schema}.tallies (handler, state, delta)
     SELECT handler, state, sum(delta) FROM gone GROUP BY handler, state HAVING sum(delta) <> 0`,
  );
}

const before = (ms: string): string => `now() - ${ms}::float8 * interval '1 millisecond'`;

/** Counted and not `NOT EXISTS`, which the planner may answer by reading all deliveries there are. */
const finished = (schema: string): string => `0 = (
  SELECT count(*) FROM ${schema}.deliveries d
   WHERE d.event = e.seq AND d.state NOT IN ('done', 'skipped'))`;
