import type { InboxStore } from '../../store/inbox-store.js';
import type { ConnectionSource } from '../connection/connection-source.js';
import { asInterval, epochMs, NOW_MS } from './schema.js';

/** How many old events one statement reads at most. Unfinished events are kept, and there may be millions of them. */
const SLICE = 2000;

/** The position of an event in the order of receipt. */
interface Position {
  /** The exact time from the database. If it were rounded down, the next slice would start with the same events. */
  readonly receivedMs: string;
  readonly seq: string;
}

const START: Position = { receivedMs: '0', seq: '0' };

/** Deletes old finished events, in batches that block no receive. */
export class Pruning {
  /** The end of the last batch. The next batch starts here, so that it does not read the same unfinished events again. */
  #from = START;

  constructor(
    private readonly source: ConnectionSource,
    private readonly schema: string,
  ) {}

  /** Prunes one batch and returns how many events and expectations it changed. */
  async prune({
    bodiesMs,
    tombstonesMs,
    limit,
  }: Parameters<InboxStore['prune']>[0]): Promise<number> {
    const { source, schema } = this;
    const bodies = await this.#pruneBodies(bodiesMs, limit);
    const left = limit - bodies;
    const tombstones = left > 0 ? await pruneTombstones(source, schema, tombstonesMs, left) : 0;
    const ended =
      left > tombstones
        ? await pruneExpectations(source, schema, tombstonesMs, left - tombstones)
        : 0;
    return bodies + tombstones + ended;
  }

  async #pruneBodies(olderMs: number, limit: number): Promise<number> {
    let from = this.#from;
    let fromStart = from === START;
    let changed = 0;
    while (changed < limit) {
      const slice = await this.#readSlice(olderMs, from);
      const finished = slice.filter((event) => event.finished);
      const chosen = finished.slice(0, limit - changed);
      if (chosen.length > 0) changed += await pruneChosen(this.source, this.schema, chosen);
      if (chosen.length < finished.length) {
        from = chosen.at(-1)!;
      } else if (slice.length === SLICE) {
        from = slice.at(-1)!;
      } else {
        from = START;
        if (fromStart) break;
        // Events before the start of this call may have finished in the meantime.
        fromStart = true;
      }
    }
    this.#from = from;
    return changed;
  }

  /** Returns the next old events that have a body. */
  async #readSlice(
    olderMs: number,
    { receivedMs, seq }: Position,
  ): Promise<(Position & { readonly finished: boolean })[]> {
    const rows = await this.source.query(
      `SELECT e.seq, ${epochMs('e.received_at')} AS received_ms, ${isFinished(this.schema)} AS finished
         FROM ${this.schema}.event e
        WHERE e.raw IS NOT NULL AND e.received_at < ${before('$1')}
          AND (e.received_at, e.seq) > (to_timestamp($2::float8 / 1000), $3::bigint)
        ORDER BY e.received_at, e.seq LIMIT ${SLICE}`,
      [olderMs, receivedMs, seq],
    );
    return rows.map((row) => ({
      seq: row['seq']!,
      receivedMs: row['received_ms']!,
      finished: row['finished'] === 't',
    }));
  }
}

/**
 * Prunes events with two statements: the first locks the events, and the second reads their deliveries after that. One
 * statement would read the deliveries before it has the locks, and delete one that an operator redrives in between.
 */
async function pruneChosen(
  source: ConnectionSource,
  schema: string,
  chosen: readonly Position[],
): Promise<number> {
  return source.transaction(async (connection) => {
    const { rows } = await connection.run(
      `SELECT e.seq FROM ${schema}.event e
        WHERE e.seq = ANY ($1::bigint[]) AND e.raw IS NOT NULL FOR UPDATE SKIP LOCKED`,
      [chosen.map(({ seq }) => seq)],
    );
    if (rows.length === 0) return 0;
    const pruned = await connection.run(
      `WITH finished AS MATERIALIZED (
         SELECT e.seq FROM ${schema}.event e WHERE e.seq = ANY ($1::bigint[]) AND ${isFinished(schema)}
       ), deleted AS (
         DELETE FROM ${schema}.delivery d USING finished f WHERE d.event = f.seq
       )
       UPDATE ${schema}.event e SET raw = NULL, headers = NULL, reference = NULL, amount = NULL, currency = NULL,
                unhandled = false
         FROM finished f WHERE e.seq = f.seq
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

/** Deletes expectations that ended that many milliseconds ago. It skips those that another transaction has locked. */
async function pruneExpectations(
  source: ConnectionSource,
  schema: string,
  olderMs: number,
  limit: number,
): Promise<number> {
  const rows = await source.query(
    `DELETE FROM ${schema}.expectation WHERE seq IN (
       SELECT x.seq FROM ${schema}.expectation x
        WHERE x.state IN ('fulfilled', 'cancelled') AND x.created_at < ${NOW_MS} - $1::float8
          AND COALESCE(x.fulfilled_at, 0) < ${NOW_MS} - $1::float8
        LIMIT $2 FOR UPDATE SKIP LOCKED)
     RETURNING seq`,
    [olderMs, limit],
  );
  return rows.length;
}

/** SQL for the time that many milliseconds ago. */
const before = (ms: string): string => `clock_timestamp() - ${asInterval(`${ms}::float8`)}`;

/** SQL for whether all deliveries of an event `e` are finished. For `NOT EXISTS` the planner may read all deliveries. */
const isFinished = (schema: string): string => `0 = (
  SELECT count(*) FROM ${schema}.delivery d WHERE d.event = e.seq AND d.state NOT IN ('done', 'skipped'))`;
