import { EXPECTATION_ID, POLL_HANDLER } from '../../store/expectation-store.js';
import type {
  ExpectationFilter,
  ExpectationStore,
  StoredExpectation,
} from '../../store/inbox-store.js';
import { boundedError, COUNT_CAP } from '../../store/stored-event.js';
import type { ConnectionSource } from '../connection/connection-source.js';
import { prepared } from '../connection/database-connection.js';
import type { PreparedStatement } from '../connection/database-connection.js';
import type { WakeNotifier } from '../connection/wake-notifications.js';
import { firstValueOf } from './commit.js';
import { byteaArray, onceHash } from './receive-values.js';
import { epochMs, STORE_NOW } from './schema.js';
import { ParameterList, parsePosition } from './search.js';
import { MAX_DUE_MS } from './settle.js';
import { fromStored, LAST, toExpectation, toStored } from './stored-rows.js';

/** The times of an expectation `x`, in milliseconds since the epoch. */
const TIMES = ['created_at', 'due_by', 'last_poll_at', 'fulfilled_at']
  .map((column) => `${epochMs(`x.${column}`)} AS ${column}_ms`)
  .join(', ');

/** The parts of the open store that {@link PostgresExpectations} uses. */
interface OpenInbox {
  readonly source: ConnectionSource;
  readonly notifier: WakeNotifier;
}

/** The expectations of a PostgreSQL inbox. */
export class PostgresExpectations implements ExpectationStore {
  readonly #settlePoll: PreparedStatement;

  constructor(
    private readonly open: () => OpenInbox,
    private readonly schema: string,
    /** How often each worker looks for deliveries that became due without a notification, in milliseconds. */
    private readonly pollMs: number,
  ) {
    this.#settlePoll = prepared(
      `SELECT ${schema}.settle_poll($1::bigint, $2::bigint, $3::text, $4::text, $5::float8, $6::boolean) AS settled`,
    );
  }

  async expect(
    expectation: Parameters<ExpectationStore['expect']>[0],
    tx?: unknown,
  ): Promise<boolean> {
    const { company, reference, transactionId, dueBy, schedule, firstPollInMs } = expectation;
    const stored = await this.#call(
      'expect',
      [
        toStored(company),
        toStored(reference),
        toStored(transactionId ?? ''),
        dueBy === null ? '' : String(dueBy.getTime()),
        JSON.stringify(schedule),
        String(Math.min(firstPollInMs, MAX_DUE_MS)),
      ],
      tx,
    );
    // Not in the application's transaction: see WakeNotifier. It commits later, and workers find the poll themselves.
    if (Number(stored) === 1 && tx === undefined && firstPollInMs < this.pollMs) {
      this.open().notifier.notify();
    }
    return Number(stored) === 1;
  }

  async attach(
    company: string,
    reference: string,
    transactionId: string,
    tx?: unknown,
  ): ReturnType<ExpectationStore['attach']> {
    const values = [company, reference, transactionId].map(toStored);
    const outcome = await this.#call('attach', values, tx);
    return String(outcome) as Awaited<ReturnType<ExpectationStore['attach']>>;
  }

  async cancel(company: string, reference: string): Promise<boolean> {
    const [row] = await this.open().source.query(
      `SELECT ${this.schema}.cancel($1, $2) AS cancelled`,
      [toStored(company), toStored(reference)],
    );
    return row!['cancelled'] === 't';
  }

  async find(company: string, reference: string): Promise<StoredExpectation | undefined> {
    const [row] = await this.open().source.query(
      `${this.#select(`${this.schema}.expectation x`)} WHERE x.reference = $1 AND x.company = $2`,
      [toStored(reference), toStored(company)],
    );
    return row && toExpectation(row);
  }

  async list({
    filter,
    limit,
    after,
  }: Parameters<ExpectationStore['list']>[0]): ReturnType<ExpectationStore['list']> {
    const values = new ParameterList();
    const conditions = conditionsOf(this.schema, filter, values);
    if (after !== null) {
      const { ms, seq } = parsePosition(after);
      const time = `to_timestamp(${values.add(ms, 'float8')} / 1000)`;
      conditions.push(`(x.created_at, x.event) < (${time}, ${values.add(seq, 'bigint')})`);
    }
    // One expectation more than requested: if there is one, there is a next page.
    const order = `ORDER BY x.created_at DESC, x.event DESC LIMIT ${values.add(limit + 1, 'integer')}`;
    const pages = prefixConditions(this.schema, filter.search, values).map((condition) => {
      const where = [...conditions, condition].join(' AND ');
      return `(SELECT x.* FROM ${this.schema}.expectation x WHERE ${where} ${order})`;
    });
    const rows = await this.open().source.query(
      this.#select(`(SELECT * FROM (${pages.join(' UNION ')}) x ${order}) x`) +
        ' ORDER BY x.created_at DESC, x.event DESC',
      values.all,
    );
    const last = rows.length > limit ? rows[limit - 1] : undefined;
    return {
      expectations: rows.slice(0, limit).map(toExpectation),
      next: last ? `${Math.round(Number(last['created_at_ms']))}-${last['event']}` : null,
    };
  }

  async settlePoll(
    { seq, token }: Parameters<ExpectationStore['settlePoll']>[0],
    { result, detail, next }: Parameters<ExpectationStore['settlePoll']>[1],
  ): ReturnType<ExpectationStore['settlePoll']> {
    const [row] = await this.open().source.query(this.#settlePoll, [
      seq,
      token,
      result,
      detail === null ? null : toStored(boundedError(detail)),
      typeof next === 'number' ? Math.min(next, MAX_DUE_MS) : null,
      String(next === 'overdue'),
    ]);
    return { settled: row!['settled'] === 't', nextDue: false };
  }

  async pollNow(
    selections: Parameters<ExpectationStore['pollNow']>[0],
    dueInMs: readonly number[],
  ): Promise<number> {
    const { source, notifier } = this.open();
    const [row] = await source.query(
      `SELECT ${this.schema}.redrive(array_agg(x.company), array_agg('${EXPECTATION_ID}' || x.reference),
                array_agg('${POLL_HANDLER}'::text), array_agg(s.due_ms), true, true) AS changed
         FROM unnest($1::text[], $2::text[], $3::float8[]) AS s (company, reference, due_ms)
         JOIN ${this.schema}.expectation x ON x.reference = s.reference AND x.company = s.company
        WHERE x.state <> 'cancelled'`,
      [
        selections.map(({ company }) => toStored(company)),
        selections.map(({ reference }) => toStored(reference)),
        selections.map((_, index) => Math.max(0, dueInMs[index] ?? 0)),
      ],
    );
    const changed = Number(row!['changed']);
    if (changed > 0) notifier.notify();
    return changed;
  }

  async eventsOf(
    company: string,
    transactionId: string,
    eventTypes: readonly string[],
  ): ReturnType<ExpectationStore['eventsOf']> {
    const hashes = eventTypes.map((eventType) => onceHash(company, eventType, transactionId));
    const rows = await this.open().source.query(
      `SELECT e.id, e.event_type FROM ${this.schema}.event e WHERE e.once = ANY ($1::bytea[]) AND e.once IS NOT NULL`,
      [byteaArray(hashes)],
    );
    return rows.map(({ id, event_type }) => ({
      id: fromStored(id!),
      eventType: fromStored(event_type!),
    }));
  }

  async counts(): ReturnType<ExpectationStore['counts']> {
    const text = `SELECT * FROM ${this.schema}.expectation_counts()`;
    const [row] = await this.open().source.query(text);
    const capped = (count: number) => ({
      count: Math.min(count, COUNT_CAP),
      more: count > COUNT_CAP,
    });
    return {
      waiting: capped(Number(row!['o_waiting'])),
      overdue: capped(Number(row!['o_overdue'])),
    };
  }

  /** SQL for the rows that {@link toExpectation} reads. */
  #select(expectations: string): string {
    const { schema } = this;
    return `SELECT x.*, t.transaction_id, ${TIMES}, ${epochMs('d.due_at')} AS next_ms,
        greatest(0, ${epochMs(`(${STORE_NOW} - x.created_at)`)}) AS age_ms
      FROM ${expectations} LEFT JOIN ${schema}.expected_transaction t ON t.event = x.event
      LEFT JOIN ${schema}.delivery d ON d.event = x.event AND d.handler = '${POLL_HANDLER}'`;
  }

  /** Calls a function of the schema, in the transaction `tx` if it is given. All drivers can pass texts. */
  async #call(name: string, values: string[], tx: unknown): Promise<unknown> {
    const parameters = values.map((_, index) => `$${index + 1}::text`).join(', ');
    const text = `SELECT ${this.schema}.${name}(${parameters}) AS outcome`;
    if (tx === undefined) return firstValueOf(await this.open().source.query(text, values));
    const { query } = (tx ?? {}) as { query?: unknown };
    if (typeof query !== 'function') {
      throw new TypeError(
        `"tx" of ${name}() needs a method query(text, values), as a client of "pg" and an EntityManager of TypeORM have it.`,
      );
    }
    return firstValueOf((await query.call(tx, text, values)) as readonly unknown[]);
  }
}

/** SQL conditions of a filter without its search, for an expectation `x`. */
function conditionsOf(schema: string, filter: ExpectationFilter, values: ParameterList): string[] {
  const { company, transactionId, state, fulfilledBy, contradictory, from, to } = filter;
  const time = (value: Date): string =>
    `to_timestamp(${values.add(value.getTime(), 'float8')} / 1000)`;
  const found: string[] = [];
  if (company !== undefined) found.push(`x.company = ${values.add(toStored(company), 'text')}`);
  const ofTransaction = `SELECT event FROM ${schema}.expected_transaction WHERE transaction_id =`;
  if (transactionId !== undefined)
    found.push(`x.event IN (${ofTransaction} ${values.add(toStored(transactionId), 'text')})`);
  if (state !== undefined) found.push(`x.state = ${values.add(state, 'text')}`);
  if (fulfilledBy === 'webhook') found.push(`x.fulfilled_by = 'webhook'`);
  // A literal, not a parameter: the planner uses a partial index only if it knows the value.
  if (fulfilledBy === 'poll') found.push(`x.fulfilled_by = 'poll'`);
  if (contradictory) found.push('x.contradiction IS NOT NULL');
  if (from !== undefined) found.push(`x.created_at >= ${time(from)}`);
  if (to !== undefined) found.push(`x.created_at < ${time(to)}`);
  return found;
}

/** SQL conditions of a search, one of which must hold; `true` without a search. With OR, they would use no index. */
function prefixConditions(
  schema: string,
  search: string | undefined,
  values: ParameterList,
): string[] {
  if (search === undefined || search === '') return ['true'];
  const from = values.add(toStored(search), 'text');
  const to = values.add(toStored(search) + LAST, 'text');
  const begins = (column: string): string => `${column} >= ${from} AND ${column} < ${to}`;
  const ofTransaction = `SELECT t.event FROM ${schema}.expected_transaction t WHERE ${begins('t.transaction_id')}`;
  return [begins('x.reference'), `x.event IN (${ofTransaction})`];
}
