import type { InboxStore } from '../../inbox/store/inbox-store.js';
import { MAX_DISORDER_MS } from '../../inbox/store/stored-event.js';
import { SqlRecords } from './records.js';
import type { SqlDatabase } from './sql-connection.js';

/**
 * Number of old events that one slice reads. The number is limited, because unfinished events are not pruned, and there
 * may be millions of unfinished events.
 */
const SLICE = 1000;

/** Number of events that one slice prunes. The number is low, because a receive may have to wait for the slice. */
const MAX_PRUNED = 100;

type Request = Parameters<InboxStore['prune']>[0];

export interface PruneRequest extends Request {
  /** `lastKept` of the previous slice; 0 for the first slice. */
  readonly lastKept: number;
}

export interface Pruned {
  readonly changed: number;
  /** Whether this call has read all old events and, after them, one slice of the events in the table `kept`. */
  readonly done: boolean;
  /** The number of the event in the table `kept` that was read last. */
  readonly lastKept: number;
}

/** Prunes old data in slices. Other operations run between two slices. */
export class Pruning {
  #lastKept = 0;

  async prune(request: Request, prune: (slice: PruneRequest) => Promise<Pruned>): Promise<number> {
    let changed = 0;
    let done = false;
    while (!done && changed < request.limit) {
      const limit = Math.min(MAX_PRUNED, request.limit - changed);
      const pruned = await prune({ ...request, limit, lastKept: this.#lastKept });
      changed += pruned.changed;
      ({ done, lastKept: this.#lastKept } = pruned);
    }
    return changed;
  }
}

/**
 * Deletes old expectations and tombstones, and then the bodies of old events. One call deletes at most `limit` of these
 * expectations, tombstones and bodies. The class reads each event once, in the order of the event numbers, and adds the
 * old events that it cannot prune to the table `kept`. Finally, it prunes the events in this table whose deliveries
 * have finished in the meantime.
 */
export class SqlPruning {
  constructor(private readonly database: SqlDatabase) {}

  async slice({ bodiesMs, tombstonesMs, limit, lastKept }: PruneRequest): Promise<Pruned> {
    const { pruned } = this.database.dialect.layout;
    const ended = await this.#delete(
      'expectation',
      'expectation_state',
      (before) => `e.state IN ('fulfilled', 'cancelled') AND e.created_at < ${before}
        AND COALESCE(e.fulfilled_at, 0) < ${before}`,
      [tombstonesMs, limit],
    );
    // The tombstone of an event whose own time is in the future is stored for longer.
    const expired = await this.#delete(
      'event',
      'event_tombstone',
      (before) => `${pruned} AND e.received_at < ${before} AND e.occurred_at < ${before}
        ORDER BY e.received_at`,
      [tombstonesMs, limit - ended],
    );
    if (ended + expired > 0) return { changed: ended + expired, done: false, lastKept };
    const passed = await this.#passEvents(bodiesMs, limit);
    if (passed !== null) return { changed: passed, done: false, lastKept };
    await new SqlRecords(this.database).prune();
    return { ...(await this.#pruneKept(bodiesMs, limit, lastKept)), done: true };
  }

  /**
   * Prunes the next old events, and adds the unfinished events to the table `kept`. Returns the number of pruned
   * events: 0 if all events of the slice must be kept, `null` if no old event is left. An event whose time of receipt
   * is in the future is kept too, because the clock was wrong when the event was received. The two statements at the
   * end are not in one transaction, because receives would wait for the row of `meta` if this process stopped between
   * the statements.
   */
  async #passEvents(bodiesMs: number, limit: number): Promise<number | null> {
    const [event, meta, kept] = ['event', 'meta', 'kept'].map((name) => this.#table(name));
    const slice = await this.#read(
      bodiesMs,
      `SELECT x.seq FROM ${event} x WHERE x.seq > (SELECT m.pruned_to FROM ${meta} m) ORDER BY x.seq LIMIT ${SLICE}`,
    );
    const { pruned, next } = await this.#pruneFinished(slice, limit);
    const old = until(slice, (one) => one.state === 'young' || one === next);
    const passed = until(old, ({ isFinal, state }) => !isFinal && state !== 'future');
    if (passed.length > 0) {
      const left = passed.filter(({ seq, state }) => state !== 'pruned' && !pruned.has(seq));
      await this.database.run(
        `INSERT INTO ${kept} (event) SELECT (j.value ->> 0)::bigint
         FROM ${this.database.dialect.elements('$1::json')} WHERE true ON CONFLICT DO NOTHING`,
        [JSON.stringify(left.map(({ seq }) => [seq]))],
      );
      await this.database.run(`UPDATE ${meta} SET pruned_to = $1 WHERE pruned_to < $1`, [
        passed.at(-1)!.seq,
      ]);
    }
    return passed.length === 0 && pruned.size === 0 ? null : pruned.size;
  }

  async #pruneKept(
    bodiesMs: number,
    limit: number,
    lastKept: number,
  ): Promise<Pick<Pruned, 'changed' | 'lastKept'>> {
    const kept = this.#table('kept');
    const slice = await this.#read(
      bodiesMs,
      `SELECT k.event AS seq FROM ${kept} k WHERE k.event > $2 ORDER BY k.event LIMIT ${SLICE}`,
      [lastKept],
    );
    const { pruned, next } = await this.#pruneFinished(slice, limit);
    const gone = slice.filter(({ seq, state }) => state === 'pruned' || pruned.has(seq));
    await this.database.run(
      `DELETE FROM ${kept} WHERE ${this.database.dialect.isOneOf('event', '$1::bigint[]')}`,
      [gone.map(({ seq }) => seq)],
    );
    const read = until(slice, (one) => one === next);
    const isLast = read.length < SLICE && next === undefined;
    return { changed: pruned.size, lastKept: isLast ? 0 : read.at(-1)!.seq };
  }

  /**
   * Reads the events whose numbers the statement `numbers` selects as `seq`, in the order of the numbers. The parameters
   * of `numbers` begin with `$2`.
   */
  async #read(
    bodiesMs: number,
    numbers: string,
    values: readonly number[] = [],
  ): Promise<OldEvent[]> {
    const now = this.database.dialect.now('wall');
    const pruned = `e.seq IS NULL OR ${this.database.dialect.layout.pruned}`;
    // The count is a subquery, because PostgreSQL runs a subquery for each number. For a join, PostgreSQL could read
    // all deliveries.
    const unfinished = `(SELECT count(*) FROM ${this.#table('delivery')} d
      WHERE d.event = e.seq AND d.state NOT IN ('done', 'skipped'))`;
    return this.database.transaction((connection) =>
      connection.all<OldEvent>(
        `SELECT n.seq, CASE WHEN ${pruned} THEN 'pruned'
             WHEN e.received_at > ${now} + ${MAX_DISORDER_MS} THEN 'future'
             WHEN e.received_at >= ${now} - $1::bigint THEN 'young'
             WHEN ${unfinished} = 0 THEN 'finished' ELSE 'unfinished' END AS state,
           COALESCE(e.received_at < ${now} - ${MAX_DISORDER_MS}, true) AS "isFinal"
         FROM (${numbers}) n LEFT JOIN ${this.#table('event')} e ON e.seq = n.seq ORDER BY n.seq`,
        [bodiesMs, ...values],
      ),
    );
  }

  /**
   * Replaces the first `limit` finished events with tombstones. `next` is the first finished event after these events.
   * The transaction locks the events first and then reads their deliveries again, because an operator may have redriven
   * a delivery since `slice` was read.
   */
  async #pruneFinished(
    slice: readonly OldEvent[],
    limit: number,
  ): Promise<{ pruned: Set<number>; next: OldEvent | undefined }> {
    const finished = slice.filter(({ state }) => state === 'finished');
    const chosen = finished.slice(0, limit).map(({ seq }) => seq);
    const next = finished[limit];
    if (chosen.length === 0) return { pruned: new Set(), next };
    const { pruned, tombstone } = this.database.dialect.layout;
    const [event, delivery] = [this.#table('event'), this.#table('delivery')];
    const seqs = await this.database.transaction(async (connection) => {
      const { dialect } = connection;
      const isOneOf = (column: string): string => dialect.isOneOf(column, '$1::bigint[]');
      const free = await connection.all<{ seq: number }>(
        `SELECT e.seq FROM ${event} e WHERE ${isOneOf('e.seq')} AND NOT (${pruned}) ${dialect.skipLocked('e')}`,
        [chosen],
      );
      const rows = await connection.all<{ seq: number }>(
        `UPDATE ${event} AS e SET ${tombstone}, unhandled = false, reference = NULL, amount = NULL, currency = NULL
         WHERE ${isOneOf('e.seq')} AND 0 = (SELECT count(*) FROM ${delivery} d
           WHERE d.event = e.seq AND d.state NOT IN ('done', 'skipped'))
         RETURNING seq`,
        [free.map(({ seq }) => seq)],
      );
      const all = rows.map(({ seq }) => seq);
      for (const table of ['delivery', ...this.database.dialect.layout.bodyTables]) {
        await connection.run(`DELETE FROM ${this.#table(table)} WHERE ${isOneOf('event')}`, [all]);
      }
      return all;
    });
    return { pruned: new Set(seqs), next };
  }

  /** Deletes old rows `e` of a table. Skips the rows that another transaction has locked. */
  #delete(
    table: string,
    index: string,
    where: (before: string) => string,
    [olderMs, limit]: readonly [number, number],
  ): Promise<number> {
    return this.database.transaction(async (connection) => {
      const { dialect } = connection;
      const before = `${dialect.now('wall')} - $1::bigint`;
      return connection.run(
        `DELETE FROM ${this.#table(table)} WHERE seq IN (
           SELECT e.seq FROM ${this.#table(table)} e ${dialect.index(index)}
           WHERE ${where(before)} LIMIT $2 ${dialect.skipLocked('e')})`,
        [olderMs, limit],
      );
    });
  }

  #table(name: string): string {
    return this.database.dialect.table(name);
  }
}

/** An event whose body may be pruned. */
interface OldEvent {
  readonly seq: number;
  /**
   * `future`: the clock was wrong when the event was received, so the event may be old. `young`: the event is not old
   * enough to be pruned.
   */
  readonly state: 'pruned' | 'future' | 'young' | 'finished' | 'unfinished';
  /** Whether no event with a lower number can be added any more. */
  readonly isFinal: boolean | 0 | 1;
}

function until<T>(all: readonly T[], isEnd: (one: T) => boolean): T[] {
  const end = all.findIndex(isEnd);
  return all.slice(0, end === -1 ? all.length : end);
}
