import type { InboxStore } from '../../../inbox/store/inbox-store.js';
import { MAX_DISORDER_MS } from '../../../inbox/store/stored-event.js';
import type { ConnectionSource } from '../connection/connection-source.js';
import { NOW_MS } from './schema.js';

/** How many old events one statement reads at most. Unfinished events are kept, and there may be millions of them. */
const SLICE = 2000;

/** An event whose body may be pruned. */
interface OldEvent {
  readonly seq: string;
  /** `future`: the clock was wrong at its receipt, so it may be old. `young`: not old enough. */
  readonly state: 'pruned' | 'future' | 'young' | 'finished' | 'unfinished';
  /** Whether no event with a lower number can be added any more. */
  readonly isFinal: boolean;
}

/**
 * Deletes old finished events, in batches that block no receive. It reads the events in the order of their numbers, each
 * once, and puts those that it cannot prune into the table `kept`. Each batch also reads the next part of that table.
 */
export class Pruning {
  /** The kept event that was read last. */
  #lastKept = '0';

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
    const { source, schema } = this;
    let changed = 0;
    for (let isLast = false; !isLast && changed < limit;) {
      const slice = await this.#read(
        olderMs,
        `SELECT e.seq FROM ${schema}.event e WHERE e.seq > (SELECT pruned_to FROM ${schema}.meta)
          ORDER BY e.seq LIMIT ${SLICE}`,
      );
      const { pruned, next } = await this.#pruneFinished(slice, limit - changed);
      changed += pruned.size;
      const old = until(slice, (event) => event.state === 'young' || event === next);
      const passed = until(old, ({ state, isFinal }) => !isFinal && state !== 'future');
      if (passed.length > 0) {
        const kept = passed.filter(({ seq, state }) => state !== 'pruned' && !pruned.has(seq));
        await source.query(
          `WITH kept AS (INSERT INTO ${schema}.kept SELECT unnest($1::bigint[]) ON CONFLICT DO NOTHING)
           UPDATE ${schema}.meta SET pruned_to = greatest(pruned_to, $2::bigint)`,
          [kept.map(({ seq }) => seq), passed.at(-1)!.seq],
        );
      }
      isLast = passed.length < SLICE;
    }
    return changed === limit
      ? changed
      : changed + (await this.#pruneKept(olderMs, limit - changed));
  }

  /** Prunes the kept events that have finished meanwhile, in the next slice of them. */
  async #pruneKept(olderMs: number, limit: number): Promise<number> {
    const { source, schema } = this;
    const slice = await this.#read(
      olderMs,
      `SELECT k.event FROM ${schema}.kept k WHERE k.event > $2::bigint ORDER BY k.event LIMIT ${SLICE}`,
      this.#lastKept,
    );
    const { pruned, next } = await this.#pruneFinished(slice, limit);
    const gone = slice.filter(({ seq, state }) => state === 'pruned' || pruned.has(seq));
    if (gone.length > 0) {
      const text = `DELETE FROM ${schema}.kept WHERE event = ANY ($1::bigint[])`;
      await source.query(text, [gone.map(({ seq }) => seq)]);
    }
    const read = until(slice, (event) => event === next);
    this.#lastKept = read.length < SLICE && next === undefined ? '0' : read.at(-1)!.seq;
    return pruned.size;
  }

  /** Reads some events in the order of their numbers. */
  async #read(olderMs: number, numbers: string, after?: string): Promise<OldEvent[]> {
    const { source, schema } = this;
    const rows = await source.query(
      // OFFSET 0: the planner looks up each event by its number.
      `SELECT n.seq, e.state, e.is_final FROM (${numbers}) n (seq) LEFT JOIN LATERAL (
         SELECT CASE WHEN e.raw IS NULL THEN 'pruned'
                     WHEN e.received_at > ${NOW_MS} + ${MAX_DISORDER_MS} THEN 'future'
                     WHEN e.received_at >= ${before('$1')} THEN 'young'
                     WHEN ${isFinished(schema)} THEN 'finished' ELSE 'unfinished' END AS state,
                e.received_at < ${NOW_MS} - ${MAX_DISORDER_MS} AS is_final
           FROM ${schema}.event e WHERE e.seq = n.seq OFFSET 0) e ON true
        ORDER BY n.seq`,
      after === undefined ? [olderMs] : [olderMs, after],
    );
    return rows.map((row) => ({
      seq: row['seq']!,
      state: (row['state'] ?? 'pruned') as OldEvent['state'],
      isFinal: row['is_final'] === 't',
    }));
  }

  /** Prunes the first `limit` finished events. `next`: the first finished event after them. */
  async #pruneFinished(
    slice: readonly OldEvent[],
    limit: number,
  ): Promise<{ pruned: Set<string>; next: OldEvent | undefined }> {
    const finished = slice.filter(({ state }) => state === 'finished');
    const pruned = await pruneChosen(this.source, this.schema, finished.slice(0, limit));
    return { pruned, next: finished[limit] };
  }
}

/** The elements before the first that meets a condition. */
function until<T>(all: readonly T[], isEnd: (one: T) => boolean): T[] {
  const end = all.findIndex(isEnd);
  return all.slice(0, end === -1 ? all.length : end);
}

/**
 * Prunes events with two statements: the first locks the events, and the second reads their deliveries after that. One
 * statement would read the deliveries before it has the locks, and delete one that an operator redrives in between.
 * Returns the numbers of the events that it pruned.
 */
async function pruneChosen(
  source: ConnectionSource,
  schema: string,
  chosen: readonly OldEvent[],
): Promise<Set<string>> {
  if (chosen.length === 0) return new Set();
  return source.transaction(async (connection) => {
    const { rows } = await connection.run(
      `SELECT e.seq FROM ${schema}.event e
        WHERE e.seq = ANY ($1::bigint[]) AND e.raw IS NOT NULL FOR UPDATE SKIP LOCKED`,
      [chosen.map(({ seq }) => seq)],
    );
    if (rows.length === 0) return new Set();
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
    return new Set(pruned.rows.map(({ seq }) => seq!));
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
        WHERE x.state IN ('fulfilled', 'cancelled') AND x.created_at < ${before('$1')}
          AND COALESCE(x.fulfilled_at, 0) < ${before('$1')}
        LIMIT $2 FOR UPDATE SKIP LOCKED)
     RETURNING seq`,
    [olderMs, limit],
  );
  return rows.length;
}

/** SQL for the time that many milliseconds ago. */
const before = (ms: string): string => `${NOW_MS} - ${ms}::bigint`;

/** SQL for whether all deliveries of an event `e` are finished. For `NOT EXISTS` the planner may read all deliveries. */
const isFinished = (schema: string): string => `0 = (
  SELECT count(*) FROM ${schema}.delivery d WHERE d.event = e.seq AND d.state NOT IN ('done', 'skipped'))`;
