import { countActivity } from '../../inbox/store/activity-per-minute.js';
import type { CountedEvent } from '../../inbox/store/activity-per-minute.js';
import type {
  DeliveryState,
  EventFilter,
  EventPage,
  EventSource,
  FailedDelivery,
  InboxActivity,
  InboxStats,
  InboxStore,
  Lease,
  StoredDelivery,
  StoredEvent,
} from '../../inbox/store/inbox-store.js';
import {
  amountIn,
  AMOUNTS_READ,
  capped,
  COUNT_CAP,
  HISTORY_LENGTH,
  lowerCase,
  MAX_DISORDER_MS,
  MAX_FAILED,
  MAX_OF_PAYMENT,
  parseSeq,
  toHistory,
} from '../../inbox/store/stored-event.js';
import type { HistoryEntry } from '../../inbox/store/stored-event.js';
import {
  countsOnce,
  fromStored,
  LAST,
  notOnce,
  ParameterList,
  readPage,
  SLICE,
  toStored,
  whereAll,
} from './sql-connection.js';
import type { Condition, SqlConnection, SqlDatabase, SqlDialect } from './sql-connection.js';
import { toPause } from './workers.js';

/**
 * SQL: whether a delivery `d` is pending, running or dead, and at least one of its attempts failed. A receive does not
 * write to the index of these deliveries.
 */
const HAS_FAILED = `d.last_error IS NOT NULL AND d.state IN ('pending', 'running', 'dead')`;

/**
 * SQL: whether a delivery `d` is pending, dead or skipped. An event that is handled immediately adds no entry to the
 * index of these deliveries.
 */
const UNDONE = "d.state NOT IN ('done', 'running')";

interface EventRow {
  readonly seq: number;
  readonly company: string;
  readonly id: string;
  readonly source: EventSource;
  readonly event_type: string;
  readonly occurred_at: number;
  readonly received_at: number;
  readonly ordering_key: string | null;
  readonly reference: string | null;
  readonly amount: string | null;
  readonly currency: string | null;
  readonly stale: boolean | 0 | 1;
  readonly pruned: boolean | 0 | 1;
  /** The body in hexadecimal. The columns `raw`, `headers` and `repeats` are absent in the rows of a list. */
  readonly raw?: string | null;
  readonly headers?: string | null;
  /** A JSON array of pairs of an id and a time. */
  readonly repeats?: string | null;
}

const columnsOf = ({ layout }: SqlDialect): string =>
  `e.seq, e.company, e.id, e.source, e.event_type, e.occurred_at, e.received_at, e.ordering_key,
   e.reference, e.amount, e.currency, e.stale, ${layout.pruned} AS pruned`;

/** The columns of a delivery from which its history is built. */
export interface HistoryRow {
  readonly state: DeliveryState;
  readonly attempts: number;
  readonly started_at: number | null;
  readonly finished_at: number | null;
  /** A JSON array of {@link HistoryEntry}. */
  readonly history: string | null;
}

interface DeliveryRow extends HistoryRow {
  readonly event: number;
  readonly handler: string;
  readonly last_error: string | null;
  readonly frames: string | null;
  readonly due_at: number | null;
}

/**
 * The source from which a list reads events: either a few known events, or an index that contains all events that can
 * match.
 */
interface Source {
  /** SQL: the events as `s`, joined to the rows of the index that finds them. */
  readonly rows: (list: ParameterList) => string;
  /** SQL: the columns to sort by, in the order of the index. The last column is the number of the event. */
  readonly order: readonly string[];
  /** SQL: the part of the filter that is checked on each row that is read through the index. */
  readonly where: string;
  /** The part of the filter that `rows` and `where` do not check. */
  readonly rest: RestOfFilter;
}

type RestOfFilter = { readonly [Name in keyof EventFilter]?: EventFilter[Name] | undefined };

/** A range of event numbers. The range contains neither `low` nor `high`. */
interface NumberRange {
  readonly low: number;
  readonly high: number;
}

type Query = Parameters<InboxStore['list']>[0];

/** Finds, lists and counts events and their deliveries, in SQLite and PostgreSQL. */
export class SqlEvents {
  /** @param letOthersRun lets other operations run between two slices */
  constructor(
    private readonly database: SqlDatabase,
    private readonly letOthersRun: () => Promise<void> = async () => {},
  ) {}

  async find(company: string, id: string): Promise<StoredEvent | undefined> {
    const { dialect } = this.database;
    const row = await this.database.get<EventRow>(
      `SELECT ${columnsOf(dialect)}, CASE WHEN e.raw IS NOT NULL THEN ${dialect.hex('e.raw')} END AS raw, e.headers, e.repeats
       FROM ${dialect.layout.bodies} e WHERE e.id = $1 AND e.company = $2`,
      [toStored(id), toStored(company)],
    );
    return row && (await this.#toEvents(this.database, [row], true))[0];
  }

  async eventsOf(company: string, payment: string): Promise<StoredEvent[]> {
    const { dialect } = this.database;
    return this.database.transaction(async (connection) => {
      const seqs: number[] = [];
      for (const [index, sql, ...values] of this.#ofPayment(payment)) {
        const list = new ParameterList();
        const where = whereAll([[index, sql, ...values]], list);
        // Without the addition, the planner of PostgreSQL could read all events in the order of their numbers.
        const rows = await connection.all<{ readonly seq: number }>(
          `SELECT e.seq FROM ${this.#by('event e', index!)} WHERE ${where}
             AND e.company = ${list.add(toStored(company), 'text')} ORDER BY e.seq + 0 DESC LIMIT ${MAX_OF_PAYMENT}`,
          list.values,
        );
        seqs.push(...rows.map(({ seq }) => seq));
      }
      const newest = [...new Set(seqs)].toSorted((a, b) => b - a).slice(0, MAX_OF_PAYMENT);
      const rows = await connection.all<EventRow>(
        `SELECT ${columnsOf(dialect)}, e.headers, e.repeats FROM ${dialect.layout.bodies} e
         WHERE ${dialect.isOneOf('e.seq', '$1::bigint[]')} ORDER BY e.seq DESC`,
        [newest],
      );
      return this.#toEvents(connection, rows, true);
    });
  }

  async list({ filter, order, limit, after }: Query): Promise<EventPage> {
    const start = after === null ? null : { seq: parseSeq(after) };
    return this.database.transaction(async (connection) => {
      const few = await this.#fewOf(connection, filter);
      const whole = await this.#rangeOf(connection, filter);
      const { rows, next } = await readPage<EventRow, Pick<EventRow, 'seq'>>(
        limit,
        start,
        (from, left) => {
          const end = order === 'newest' ? 'high' : 'low';
          const range = from === null ? whole : { ...whole, [end]: from.seq };
          return this.#slice(connection, { filter, order, few, range, limit: left });
        },
        this.letOthersRun,
      );
      const events = await this.#toEvents(connection, rows, false);
      return { events, next: next && String(next.seq) };
    });
  }

  async failures(): ReturnType<InboxStore['failures']> {
    const deliveries = this.#by('delivery d', 'failed');
    return this.database.transaction(async (connection) => {
      const failed: FailedDelivery[] = [];
      let before = Number.MAX_SAFE_INTEGER;
      for (;;) {
        const first = await connection.get<{ event: number | null }>(
          `SELECT min(s.event) AS event FROM (
             SELECT d.event FROM ${deliveries} WHERE ${HAS_FAILED} AND d.event < $1
             ORDER BY d.event DESC LIMIT ${SLICE}) s`,
          [before],
        );
        if (first!.event === null) return { failed, more: false };
        if (failed.length >= MAX_FAILED) return { failed, more: true };
        const rows = await connection.all<FailedRow>(
          `SELECT d.handler, d.state, d.last_error, d.failed_at, e.company, e.id
           FROM ${deliveries} JOIN ${this.#table('event')} e ON e.seq = d.event
           WHERE ${HAS_FAILED} AND d.event >= $1 AND d.event < $2 ORDER BY d.event DESC`,
          [first!.event, before],
        );
        failed.push(...rows.map(toFailedDelivery));
        before = first!.event;
        await this.letOthersRun();
      }
    });
  }

  /** Uses one statement, which reads at most {@link COUNT_CAP} + 1 index entries for each capped number. */
  async stats(): Promise<InboxStats> {
    const { dialect } = this.database;
    const event = this.#table('event');
    const running = `FROM ${this.#by('delivery d', 'running')} WHERE d.state = 'running'`;
    const without = (reason: 'unhandled' | 'stale'): string => `(SELECT count(*) FROM (
      SELECT 1 FROM ${this.#by('event e', 'unhandled')} WHERE ${withoutDeliveries('e', reason)} LIMIT ${COUNT_CAP + 1}) x)`;
    const oldest = `SELECT min(x.event) FROM (
      SELECT o.event FROM (SELECT d.event FROM ${this.#by('delivery d', 'undone')}
        WHERE d.worker IS NULL AND ${UNDONE} AND d.state = 'pending' ORDER BY d.worker, d.event LIMIT 1) o
      UNION ALL SELECT min(d.event) ${running}) x`;
    const parts = [
      `SELECT 'unhandled' AS kind, CAST(NULL AS text) AS name, CAST(${without('unhandled')} AS bigint) AS value`,
      `SELECT 'stale', NULL, ${without('stale')}`,
      `SELECT 'oldest', NULL, ${dialect.now('wall')} - e.received_at FROM ${event} e WHERE e.seq = (${oldest})`,
      `SELECT 'paused', p.facts, p.paused_at FROM ${this.#table('pause')} p`,
      // The count of running deliveries needs no cap, because the slots of the workers limit it.
      `SELECT 'running', d.handler, count(*) ${running} GROUP BY d.handler`,
      ...this.database.dialect.layout.queues.map(
        ({ state, index, condition, indexed = condition }) =>
          `SELECT '${state}', c.handler, c.count FROM (${countsOf(this.#by('delivery d', index), condition, indexed)}) c`,
      ),
    ];
    const rows = await this.database.transaction((connection) =>
      connection.all<StatsRow>(parts.join('\nUNION ALL ')),
    );
    const of = (kind: StatsRow['kind']): StatsRow[] => rows.filter((row) => row.kind === kind);
    const valueOf = (kind: StatsRow['kind']): number => of(kind)[0]?.value ?? 0;
    const deliveries = (['pending', 'running', 'dead'] as const).flatMap((state) =>
      Array.from(
        Map.groupBy(of(state), ({ name }) => name!),
        ([name, all]) => ({
          handler: fromStored(name),
          state,
          ...capped(all.reduce((sum, { value }) => sum + value!, 0)),
        }),
      ),
    );
    return {
      deliveries: deliveries
        .filter(({ count }) => count > 0)
        .toSorted((a, b) => (a.handler < b.handler ? -1 : Number(a.handler > b.handler))),
      unhandled: capped(valueOf('unhandled')),
      stale: capped(valueOf('stale')),
      oldestPendingMs: of('oldest').length === 0 ? null : Math.max(0, valueOf('oldest')),
      paused: of('paused')
        .map(({ name, value }) => toPause(name!, value!))
        .toSorted((a, b) => (a.handler < b.handler ? -1 : 1)),
    };
  }

  async activity(minutes: number, bodiesMs: number): Promise<InboxActivity> {
    return this.database.transaction(async (connection) => {
      const clock = await connection.get<{ now: number }>(
        `SELECT ${connection.dialect.now('wall')} AS now`,
      );
      const { now } = clock!;
      return countActivity(minutes, now, now - bodiesMs, (before) =>
        this.#activitySlice(connection, before),
      );
    });
  }

  async newerHandled({ seq, handler }: Pick<Lease, 'seq' | 'handler'>): Promise<boolean> {
    const { dialect } = this.database;
    const newerIn = (index: string, condition: string): string =>
      `EXISTS (SELECT 1 FROM ${this.#by('event e', index)}
       WHERE ${dialect.indexed('e.ordering_key')} = ${dialect.indexed('o.ordering_key')} AND ${condition}
         AND e.ordering_key = o.ordering_key AND e.company = o.company AND e.occurred_at > o.occurred_at
         AND (${dialect.layout.pruned} OR EXISTS (SELECT 1 FROM ${this.#table('delivery')} d
           WHERE d.event = e.seq AND d.handler = $2 AND d.state = 'done' LIMIT 1 OFFSET 0)))`;
    const newer = await this.database.get(
      `SELECT 1 AS found FROM ${this.#table('event')} o WHERE o.seq = $1
       AND (${newerIn('once', countsOnce('e.'))} OR ${newerIn('transaction', notOnce('e.'))})`,
      [seq, toStored(handler)],
    );
    return newer !== undefined;
  }

  async #activitySlice(connection: SqlConnection, before: number): Promise<CountedEvent[]> {
    await this.letOthersRun();
    const events = await connection.all<
      Pick<EventRow, 'seq' | 'received_at' | 'source' | 'event_type'>
    >(
      `SELECT e.seq, e.received_at, e.source, e.event_type FROM ${this.#table('event')} e WHERE e.seq < $1 ORDER BY e.seq DESC LIMIT ${SLICE}`,
      [before],
    );
    const { dialect } = connection;
    const endedAt = 'CAST(j.value ->> 1 AS bigint) + CAST(j.value ->> 2 AS bigint)';
    // The statement returns no histories, because their errors may take megabytes.
    const rows = await connection.all<CountedRow>(
      `SELECT d.event, d.handler, d.state, d.finished_at, CASE WHEN d.failed_at IS NOT NULL THEN (
         SELECT ${dialect.jsonArray(endedAt)} FROM ${dialect.elements('d.history::json')} WHERE j.value ->> 3 <> 'd') END AS failed
       FROM ${this.#table('delivery')} d WHERE d.event >= $1::bigint AND d.event < $2::bigint`,
      [events.at(-1)?.seq ?? before, before],
    );
    const byEvent = Map.groupBy(rows, ({ event }) => event);
    return events.map(({ seq, received_at, source, event_type }) => ({
      seq,
      receivedMs: received_at,
      source,
      eventType: fromStored(event_type),
      deliveries: (byEvent.get(seq) ?? []).map(({ handler, state, finished_at, failed }) => ({
        handler: fromStored(handler),
        state,
        finishedMs: finished_at,
        failedMs: JSON.parse(failed ?? '[]') as number[],
      })),
    }));
  }

  async #slice(
    connection: SqlConnection,
    part: Omit<Query, 'after'> & { few: readonly number[] | null; range: NumberRange },
  ): Promise<{ rows: EventRow[]; next: Pick<EventRow, 'seq'> | null }> {
    const { filter, few, range, order, limit } = part;
    const source = this.#sourceOf(filter, few);
    const others = this.#conditionsOf(source.rest);
    const direction = order === 'newest' ? 'DESC' : 'ASC';
    const size = others.length === 0 ? Math.min(SLICE, limit) : SLICE;
    const sorted = source.order.map((column) => `${column} ${direction}`);
    const seq = source.order.at(-1)!;
    const list = new ParameterList();
    const slice = `FROM ${source.rows(list)} WHERE ${source.where} AND ${seq} > ${list.add(range.low, 'bigint')}
      AND ${seq} < ${list.add(range.high, 'bigint')} ORDER BY ${sorted.join(', ')}`;
    const values = [...list.values];
    const rows = await connection.all<EventRow>(
      `SELECT ${columnsOf(connection.dialect)} FROM (SELECT s.* ${slice} LIMIT ${size}) e
       WHERE ${whereAll(others, list)} ORDER BY e.seq ${direction} LIMIT ${list.add(limit, 'bigint')}`,
      list.values,
    );
    if (rows.length === limit) return { rows, next: rows.at(-1)! };
    const next = await connection.get<Pick<EventRow, 'seq'>>(
      `SELECT s.seq ${slice} LIMIT 1 OFFSET ${size - 1}`,
      values,
    );
    return { rows, next: next ?? null };
  }

  #sourceOf(filter: EventFilter, few: readonly number[] | null): Source {
    const { handler, ids, search, state, ...others } = filter;
    const event = this.#table('event');
    if (few !== null) {
      const numbers = JSON.stringify(few.map((seq) => [seq]));
      const seq = '(j.value ->> 0)::bigint';
      const rows = (list: ParameterList): string =>
        `${this.database.dialect.elements(list.add(numbers, 'json'))} CROSS JOIN ${event} s`;
      const rest =
        ids !== undefined ? { ...filter, ids: undefined } : { ...filter, search: undefined };
      return { rows, order: [seq], where: `s.seq = ${seq}`, rest };
    }
    if (isWithoutDeliveries(state)) {
      const rest = { ...filter, state: undefined };
      const rows = () => this.#by('event s', 'unhandled');
      return { rows, order: ['s.seq'], where: withoutDeliveries('s', state), rest };
    }
    if (state === 'pending' || state === 'dead' || state === 'skipped') {
      // The state is a literal, not a parameter, because the planner uses a partial index only for a known value.
      const where = `d.worker IS NULL AND ${UNDONE} AND d.state = '${state}' AND s.seq = d.event AND NOT EXISTS (
        SELECT 1 FROM ${this.#table('delivery')} o
        WHERE o.event = d.event AND o.handler < d.handler AND o.state = d.state LIMIT 1 OFFSET 0)`;
      const rows = () => `${this.#by('delivery d', 'undone')} CROSS JOIN ${event} s`;
      const rest = handler === undefined ? { ...others, ids, search } : filter;
      return { rows, order: ['d.worker', 'd.event'], where, rest };
    }
    return { rows: () => `${event} s`, order: ['s.seq'], where: 'true', rest: filter };
  }

  /** Returns the numbers of the events that can match, if an index finds only a few such events; otherwise `null`. */
  async #fewOf(
    connection: SqlConnection,
    { ids, search, state }: EventFilter,
  ): Promise<readonly number[] | null> {
    const ofEvents = (conditions: readonly Condition[]) =>
      this.#numbers(connection, 'event e', 'e.seq', conditions);
    if (ids !== undefined) return ofEvents([this.#isOneOf(ids)]);
    if (search) {
      const indexed = this.#foundBy(search).filter(([index]) => index !== null);
      const named = await ofEvents(indexed);
      const [amount] = this.#hasAmountIn(search);
      if (named === null || amount === undefined) return named;
      const found = new Set([...named, ...(await this.#newest(connection, amount))]);
      return found.size <= SLICE ? [...found] : null;
    }
    if (state !== 'running') return null;
    return this.#numbers(connection, 'delivery d', 'd.event', [['running', "d.state = 'running'"]]);
  }

  /** Returns the events that meet at least one of these conditions; `null` if there are too many events. */
  async #numbers(
    connection: SqlConnection,
    table: string,
    seq: string,
    conditions: readonly Condition[],
  ): Promise<readonly number[] | null> {
    const found = new Set<number>();
    for (const condition of conditions) {
      const list = new ParameterList();
      const rows = await connection.all<{ readonly seq: number }>(
        `SELECT ${seq} AS seq FROM ${this.#by(table, condition[0]!)}
         WHERE ${whereAll([condition], list)} LIMIT ${SLICE + 1}`,
        list.values,
      );
      for (const row of rows) found.add(row.seq);
    }
    return found.size <= SLICE ? [...found] : null;
  }

  /**
   * Returns the events that meet a condition, among about the newest {@link AMOUNTS_READ} events. Stops if too many
   * events meet the condition.
   */
  async #newest(connection: SqlConnection, [index, sql, ...values]: Condition): Promise<number[]> {
    const newest = await connection.get<{ readonly seq: number | null }>(
      `SELECT max(e.seq) AS seq FROM ${this.#table('event')} e`,
    );
    const found: number[] = [];
    const last = newest!.seq ?? 0;
    const size = AMOUNTS_READ / 10;
    for (let high = last; high > last - AMOUNTS_READ && found.length <= SLICE; high -= size) {
      const list = new ParameterList();
      const rows = await connection.all<{ readonly seq: number }>(
        `SELECT e.seq FROM ${this.#table('event')} e WHERE e.seq > ${list.add(high - size, 'bigint')}
           AND e.seq <= ${list.add(high, 'bigint')} AND ${whereAll([[index, sql, ...values]], list)}`,
        list.values,
      );
      found.push(...rows.map(({ seq }) => seq));
      await this.letOthersRun();
    }
    return found;
  }

  #isOneOf(ids: readonly string[]): Condition {
    return ['id', this.database.dialect.isOneOf('e.id', '?::text[]'), ids.map(toStored)];
  }

  /** Returns the conditions of a search. A search finds an event that meets at least one of these conditions. */
  #foundBy(search: string): Condition[] {
    const { dialect } = this.database;
    const text = toStored(search);
    const lower = lowerCase(text);
    const begins = (column: string, indexed: (sql: string) => string): string =>
      `${indexed(column)} >= ${indexed('?::text')} AND ${indexed(column)} < ${indexed('?::text')} || '${LAST}'
       AND substr(${column}, 1, length(?::text)) = ?::text`;
    const isReference = begins('lower(e.reference)', (sql) => dialect.indexed(sql));
    return [
      ['id', begins('e.id', (sql) => sql), text, text, text, text],
      ['reference', `e.reference IS NOT NULL AND ${isReference}`, lower, lower, lower, lower],
      ...this.#ofTransaction(text),
      ...this.#hasAmountIn(search),
    ];
  }

  /** Returns the conditions of `eventsOf`. An event of the payment meets at least one of these conditions. */
  #ofPayment(payment: string): Condition[] {
    const { dialect } = this.database;
    const text = toStored(payment);
    const lower = lowerCase(text);
    const isReference = `e.reference IS NOT NULL AND ${dialect.indexed('lower(e.reference)')} = ${dialect.indexed('?::text')}
      AND e.reference = ?::text`;
    return [['reference', isReference, lower, text], ...this.#ofTransaction(text)];
  }

  #ofTransaction(text: string): Condition[] {
    const { dialect } = this.database;
    const isTransaction = `${dialect.indexed('e.ordering_key')} = ${dialect.indexed('?::text')} AND e.ordering_key = ?::text`;
    return [
      ['once', `${countsOnce('e.')} AND ${isTransaction}`, text, text],
      ['transaction', `${notOnce('e.')} AND ${isTransaction}`, text, text],
    ];
  }

  /** Returns a condition without an index if the text of a search is an amount; otherwise an empty array. */
  #hasAmountIn(search: string): Condition[] {
    const searched = amountIn(search);
    if (searched === null) return [];
    const { amount, currencies } = searched;
    // Compares the start of the amount first, because this comparison is cheap. The last line removes the zeros that
    // normalAmount removes.
    const sql = `e.seq > (SELECT max(x.seq) - ${AMOUNTS_READ} FROM ${this.#table('event')} x)
      AND substr(e.amount, 1, length(?::text)) = ?::text
      AND CASE WHEN e.amount LIKE '%.%' THEN rtrim(rtrim(e.amount, '0'), '.') ELSE e.amount END = ?::text`;
    const values = [amount, amount, amount];
    if (currencies.length === 0) return [[null, sql, ...values]];
    return [[null, `${sql} AND e.currency IN (?::text, ?::text)`, ...values, ...currencies]];
  }

  /** Returns a range of event numbers that contains all events received in the time range of a filter. */
  async #rangeOf(connection: SqlConnection, { from, to }: EventFilter): Promise<NumberRange> {
    const first = async (time: number): Promise<number> =>
      (await connection.get<{ seq: number }>(firstSince(this.#table('event')), [time]))!.seq;
    return {
      low: from === undefined ? 0 : (await first(from.getTime() - MAX_DISORDER_MS)) - 1,
      high:
        to === undefined ? Number.MAX_SAFE_INTEGER : await first(to.getTime() + MAX_DISORDER_MS),
    };
  }

  #conditionsOf(filter: RestOfFilter): Condition[] {
    const { company, eventType, source, handler, state, from, to, search, ids } = filter;
    const found: Condition[] = [];
    if (company !== undefined) found.push([null, 'e.company = ?::text', toStored(company)]);
    if (eventType !== undefined) found.push([null, 'e.event_type = ?::text', toStored(eventType)]);
    if (source !== undefined) found.push([null, 'e.source = ?::text', source]);
    if (from !== undefined) found.push([null, 'e.received_at >= ?::bigint', from.getTime()]);
    if (to !== undefined) found.push([null, 'e.received_at < ?::bigint', to.getTime()]);
    if (ids !== undefined) found.push(this.#isOneOf(ids));
    if (search) {
      const conditions = this.#foundBy(search);
      const either = conditions.map(([, sql]) => `(${sql})`).join(' OR ');
      found.push([null, `(${either})`, ...conditions.flatMap(([, , ...values]) => values)]);
    }
    if (isWithoutDeliveries(state)) {
      found.push([null, withoutDeliveries('e', state)]);
    } else if (handler !== undefined || state !== undefined) {
      const columns = Object.entries({ handler: handler && toStored(handler), state }).filter(
        ([, value]) => value !== undefined,
      );
      const where = columns.map(([column]) => `AND d.${column} = ?::text`).join(' ');
      // With OFFSET, the planner of PostgreSQL looks up the deliveries of each event. Otherwise, the planner could read
      // all deliveries.
      found.push([
        null,
        `EXISTS (SELECT 1 FROM ${this.#table('delivery')} d WHERE d.event = e.seq ${where} LIMIT 1 OFFSET 0)`,
        ...columns.map(([, value]) => value!),
      ]);
    }
    return found;
  }

  async #toEvents(
    connection: SqlConnection,
    rows: readonly EventRow[],
    whole: boolean,
  ): Promise<StoredEvent[]> {
    if (rows.length === 0) return [];
    const { dialect } = connection;
    const deliveries = await connection.all<DeliveryRow>(
      `SELECT d.event, d.handler, d.state, d.attempts, d.last_error, d.due_at, d.started_at, d.finished_at,
         ${whole ? 'd.history, d.frames' : 'NULL AS history, NULL AS frames'}
       FROM ${this.#table('delivery')} d WHERE ${dialect.isOneOf('d.event', '$1::bigint[]')} ORDER BY d.event, d.handler`,
      [rows.map(({ seq }) => seq)],
    );
    const byEvent = Map.groupBy(deliveries, ({ event }) => event);
    return rows.map((row) => ({
      ...toEvent(row),
      deliveries: (byEvent.get(row.seq) ?? []).map((delivery): StoredDelivery => ({
        handler: fromStored(delivery.handler),
        state: delivery.state,
        attempts: delivery.attempts,
        lastError: textOf(delivery.last_error),
        frames: textOf(delivery.frames),
        dueAt: dateOf(delivery.due_at, dialect.wallOffsetMs),
        finishedAt: dateOf(delivery.finished_at),
        history: whole ? toHistory(historyOf(delivery)).map(withError) : [],
      })),
    }));
  }

  #table(name: string): string {
    return this.database.dialect.table(name);
  }

  /** Returns SQL that reads a table, which is given with an alias, by one of the indexes of the table. */
  #by(table: string, index: string): string {
    const [name] = table.split(' ');
    return `${this.#table(table)} ${this.database.dialect.index(`${name}_${index}`)}`;
  }
}

function withoutDeliveries(event: string, reason: 'unhandled' | 'stale'): string {
  return `${event}.unhandled AND ${event}.stale = ${reason === 'stale'}`;
}

function isWithoutDeliveries(state: EventFilter['state']): state is 'unhandled' | 'stale' {
  return state === 'unhandled' || state === 'stale';
}

/**
 * SQL for the number of the first event that was not received before a time. A binary search finds this number, if the
 * times of receipt are in the order of the numbers. The search reads about log2(n) events, where n is the largest
 * number.
 */
function firstSince(event: string): string {
  const middle = '((s.low + s.high) / 2)';
  const isEarlier = `(SELECT x.received_at FROM ${event} x WHERE x.seq >= ${middle} ORDER BY x.seq LIMIT 1) < $1::bigint`;
  return `WITH RECURSIVE s (low, high) AS (
      SELECT CAST(0 AS bigint), 1 + COALESCE((SELECT max(x.seq) FROM ${event} x), 0)
      UNION ALL
      SELECT CASE WHEN ${isEarlier} THEN ${middle} + 1 ELSE s.low END, CASE WHEN ${isEarlier} THEN s.high ELSE ${middle} END
      FROM s WHERE s.low < s.high
    ) SELECT max(s.low) AS seq FROM s`;
}

/**
 * SQL for the number of deliveries that meet a condition, by handler. The statement skips the index entries between the
 * last counted entry of one handler and the first entry of the next handler.
 */
function countsOf(deliveries: string, condition: string, indexed: string): string {
  return `WITH RECURSIVE name (handler) AS (
      SELECT min(d.handler) FROM ${deliveries} WHERE ${indexed}
      UNION ALL
      SELECT (SELECT min(d.handler) FROM ${deliveries} WHERE ${indexed} AND d.handler > n.handler)
      FROM name n WHERE n.handler IS NOT NULL
    )
    SELECT n.handler, (SELECT count(*) FROM (
        SELECT 1 FROM ${deliveries} WHERE ${condition} AND d.handler = n.handler LIMIT ${COUNT_CAP + 1}) x) AS count
    FROM name n WHERE n.handler IS NOT NULL`;
}

interface StatsRow {
  readonly kind: 'pending' | 'running' | 'dead' | 'unhandled' | 'stale' | 'oldest' | 'paused';
  readonly name: string | null;
  readonly value: number | null;
}

interface FailedRow extends Pick<DeliveryRow, 'handler' | 'state'> {
  readonly last_error: string;
  readonly failed_at: number;
  readonly company: string;
  readonly id: string;
}

function toFailedDelivery(row: FailedRow): FailedDelivery {
  return {
    handler: fromStored(row.handler),
    error: fromStored(row.last_error),
    state: row.state === 'dead' ? 'dead' : 'retrying',
    failedAt: new Date(row.failed_at),
    company: fromStored(row.company),
    eventId: fromStored(row.id),
  };
}

interface CountedRow extends Pick<DeliveryRow, 'event' | 'handler' | 'state' | 'finished_at'> {
  /** A JSON array of the times at which attempts failed or were lost; `null` if there are none. */
  readonly failed: string | null;
}

function toEvent(row: EventRow): Omit<StoredEvent, 'deliveries'> {
  const repeats = JSON.parse(row.repeats ?? '[]') as [id: string, receivedMs: number][];
  return {
    company: fromStored(row.company),
    id: fromStored(row.id),
    source: row.source,
    eventType: fromStored(row.event_type),
    occurredAt: new Date(row.occurred_at),
    orderingKey: textOf(row.ordering_key),
    reference: textOf(row.reference),
    amount: textOf(row.amount),
    currency: textOf(row.currency),
    receivedAt: new Date(row.received_at),
    pruned: Boolean(row.pruned),
    raw: row.raw == null ? null : Buffer.from(row.raw, 'hex'),
    headers: JSON.parse(fromStored(row.headers ?? '{}')) as Record<string, string>,
    stale: Boolean(row.stale),
    repeats: repeats.map(([id, ms]) => ({ id: fromStored(id), receivedAt: new Date(ms) })),
  };
}

function textOf(stored: string | null): string | null {
  return stored === null ? null : fromStored(stored);
}

function dateOf(ms: number | null, offsetMs = 0): Date | null {
  return ms === null ? null : new Date(ms + offsetMs);
}

/**
 * Returns the history of a delivery. Adds the attempt that made the delivery done, because other columns store this
 * attempt.
 */
export function historyOf({
  state,
  attempts,
  started_at,
  finished_at,
  history,
}: HistoryRow): readonly HistoryEntry[] {
  const entries = JSON.parse(history ?? '[]') as HistoryEntry[];
  if (state !== 'done' || started_at === null) return entries;
  const last: HistoryEntry = [attempts, started_at, Math.max(0, finished_at! - started_at), 'd'];
  return [...entries, last].slice(-HISTORY_LENGTH);
}

const withError = (attempt: StoredDelivery['history'][number]) => ({
  ...attempt,
  error: textOf(attempt.error),
});
