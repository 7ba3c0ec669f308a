import {
  isOpen,
  POLL_HANDLER,
  pollChange,
  settledPoll,
} from '../../inbox/store/expectation-store.js';
import type {
  CancelReason,
  EventSource,
  ExpectationFilter,
  ExpectationName,
  ExpectationState,
  ExpectationStore,
  NewExpectation,
  PollChange,
  PollLease,
  PollResult,
  PollSettlement,
  RequestState,
  SettledPoll,
  StoredExpectation,
  StoreReceipt,
} from '../../inbox/store/inbox-store.js';
import { capped, COUNT_CAP, lowerCase, parseCursor } from '../../inbox/store/stored-event.js';
import {
  countsOnce,
  fromStored,
  LAST,
  MAX_DELAY_MS,
  ParameterList,
  readPage,
  SLICE,
  toStored,
  whereAll,
} from './sql-connection.js';
import type { Condition, SqlConnection, SqlDialect, SqlValue } from './sql-connection.js';

/** SQL: whether an event can still fulfil an expectation. */
export const OPEN = "state IN ('waiting', 'overdue')";

/** SQL: removes the next poll of an expectation. A running poll keeps its lease. */
export const UNSCHEDULED = 'next_poll_at = CASE WHEN leased THEN next_poll_at END';

/** SQL: whether an expectation has the reference and the company of the first two parameters; see {@link nameOf}. */
const NAMED = 'reference = $1 AND company = $2';

function nameOf(company: string, reference: string): [reference: string, company: string] {
  return [toStored(reference), toStored(company)];
}

/** SQL: reopens an expectation that was fulfilled by an event with the same reference but another transaction. */
const REOPENED = `state = 'waiting', other_event_id = fulfilled_id, fulfilled_at = NULL, fulfilled_by = NULL,
  fulfilled_id = NULL, fulfilled_type = NULL, fulfilled_transaction = NULL`;

/** A stored expectation. Times are in milliseconds, and texts are as {@link toStored} returns them. */
interface ExpectationRow {
  readonly seq: number;
  readonly token: number;
  readonly company: string;
  readonly reference: string;
  readonly transaction_id: string | null;
  readonly state: ExpectationState;
  readonly created_at: number;
  readonly age_ms: number;
  readonly due_in_ms: number | null;
  readonly schedule: string;
  readonly leased: boolean | 0 | 1;
  readonly next_poll_at: number | null;
  readonly polls: number;
  readonly lost_polls: number;
  readonly last_poll_at: number | null;
  readonly last_result: PollResult | null;
  readonly last_detail: string | null;
  readonly fulfilled_at: number | null;
  readonly fulfilled_by: EventSource | null;
  readonly fulfilled_id: string | null;
  readonly fulfilled_type: string | null;
  readonly fulfilled_transaction: string | null;
  readonly cancelled_at: number | null;
  readonly cancelled_by: string | null;
  readonly cancel_note: string | null;
  readonly contradiction: string | null;
  readonly other_event_id: string | null;
  readonly request: Exclude<RequestState, 'never'> | null;
  readonly request_token: number;
  /** Whether the lease of the last request has ended. */
  readonly request_ended: boolean | 0 | 1 | null;
}

/**
 * Stores expectations in SQLite and PostgreSQL. An operation changes a row with one statement, which locks the row and
 * checks its values. An operation that has to read first starts again if its statement finds that the row has changed.
 * Therefore, no lock is held between two statements, and a process that stops between them delays no other process.
 */
export abstract class SqlExpectations implements ExpectationStore {
  readonly #table: string;

  constructor(protected readonly connection: SqlConnection) {
    this.#table = connection.dialect.table('expectation');
  }

  /** Wakes the workers, because a poll is due in `dueInMs` milliseconds. */
  protected abstract wake(dueInMs: number): void;

  /**
   * Receives the event of a change, fulfils the expectation, and records the poll, in one transaction. Returns the new
   * state; `undefined` if nothing was stored, because the receipt is `outdated`, or because the expectation or the
   * stored events of its transaction have changed since they were read.
   */
  protected abstract apply(
    change: PollChange,
    settlement: PollSettlement,
    before: PolledRow,
  ): Promise<{ state: ExpectationState | undefined; receipt: StoreReceipt | null }>;

  protected abstract inTransaction(tx: unknown): Pick<SqlConnection, 'dialect' | 'run'>;

  /** Lets other operations run between two slices of a list. */
  protected readonly pause: () => Promise<void> = async () => {};

  async expect(expectation: NewExpectation, tx?: unknown): Promise<boolean> {
    const connection = tx === undefined ? this.connection : this.inTransaction(tx);
    const { sql, values } = expectStatements(connection.dialect, expectation);
    for (const statement of sql) {
      if ((await connection.run(statement, values)) === 0) continue;
      // The application commits its transaction later. The workers find the poll after that commit, without a wake-up.
      if (tx === undefined) this.wake(expectation.firstPollInMs);
      return true;
    }
    return false;
  }

  async attach(company: string, reference: string, transactionId: string) {
    const id = toStored(transactionId);
    for (;;) {
      const row = await this.#find(company, reference);
      if (row === undefined) return 'unknown';
      const { seq, state, transaction_id, fulfilled_transaction } = row;
      if (state === 'cancelled') return 'cancelled';
      if (transaction_id !== null) return transaction_id === id ? 'attached' : 'conflict';
      const other = await this.connection.get(
        `SELECT 1 AS found FROM ${this.#by('transaction')} WHERE x.transaction_id = $1 AND x.company = $2
           AND x.state <> 'cancelled' LIMIT 1`,
        [id, toStored(company)],
      );
      if (other !== undefined) return 'conflict';
      const isOther = state === 'fulfilled' && fulfilled_transaction !== id;
      const isDue = isOther || state === 'overdue';
      const set = ['transaction_id = $1', 'lost_polls = 0'];
      if (isOther) set.push(REOPENED);
      if (isDue)
        set.push(`next_poll_at = CASE WHEN leased THEN next_poll_at ELSE ${this.#now} END`);
      const changed = await this.connection.run(
        `UPDATE ${this.#table} SET ${set.join(', ')} WHERE seq = $2 AND state = $3 AND transaction_id IS NULL
           AND fulfilled_transaction IS NOT DISTINCT FROM $4`,
        [id, seq, state, fulfilled_transaction],
      );
      if (changed > 0 && isDue) this.wake(0);
      if (changed > 0) return 'attached';
    }
  }

  async cancel(company: string, reference: string, reason?: CancelReason): Promise<boolean> {
    const { by = null, note = null } = reason ?? {};
    const changed = await this.connection.run(
      `UPDATE ${this.#table} SET state = 'cancelled', ${UNSCHEDULED}, cancelled_by = $3::text, cancel_note = $4::text,
         cancelled_at = ${this.connection.dialect.now('wall')} WHERE ${NAMED} AND ${OPEN}`,
      [...nameOf(company, reference), by && toStored(by), note && toStored(note)],
    );
    return changed > 0;
  }

  async startRequest(company: string, reference: string, leaseMs: number) {
    for (;;) {
      const row = await this.#find(company, reference);
      if (row === undefined) return undefined;
      const { seq, state, request, request_token } = row;
      const [expectation, previous] = [this.#toExpectation(row), requestStateOf(row)];
      if (!isOpen(state) || previous === 'running' || previous === 'accepted') {
        return { expectation, previous, token: null };
      }
      const changed = await this.connection.run(
        `UPDATE ${this.#table} SET request = 'running', request_token = request_token + 1,
           request_until = ${this.#now} + $4::bigint
         WHERE seq = $1 AND ${OPEN} AND transaction_id IS NULL AND request_token = $2
           AND request IS NOT DISTINCT FROM $3`,
        [seq, request_token, request, leaseMs],
      );
      if (changed > 0) return { expectation, previous, token: request_token + 1 };
    }
  }

  async endRequest(
    { company, reference }: ExpectationName,
    token: number,
    end: Exclude<RequestState, 'running'> | 'cancelled',
  ): Promise<boolean> {
    const isCancelled = end === 'cancelled';
    const cancels = "$5::boolean AND state = 'waiting' AND transaction_id IS NULL";
    const changed = await this.connection.run(
      `UPDATE ${this.#table} SET request = $4::text, state = CASE WHEN ${cancels} THEN 'cancelled' ELSE state END,
         cancelled_at = CASE WHEN ${cancels} THEN ${this.connection.dialect.now('wall')} ELSE cancelled_at END,
         next_poll_at = CASE WHEN ${cancels} AND NOT leased THEN NULL ELSE next_poll_at END
       WHERE ${NAMED} AND request = 'running' AND request_token = $3`,
      [
        ...nameOf(company, reference),
        token,
        isCancelled || end === 'never' ? null : end,
        isCancelled,
      ],
    );
    return changed > 0;
  }

  async find(company: string, reference: string): Promise<StoredExpectation | undefined> {
    const row = await this.#find(company, reference);
    return row && this.#toExpectation(row);
  }

  async list({ filter, limit, after }: Parameters<ExpectationStore['list']>[0]) {
    const few = filter.search ? await this.#fewBeginningWith(filter.search) : null;
    const start = after === null ? null : toPosition(after);
    const { rows, next } = await readPage<ExpectationRow, Position>(
      limit,
      start,
      (from, left) => this.#slice(filter, few, from, left),
      this.pause,
    );
    return {
      expectations: rows.map((row) => this.#toExpectation(row)),
      next: next && `${next.created_at}.${next.seq}`,
    };
  }

  async claimPolls({ limit, leaseMs }: Parameters<ExpectationStore['claimPolls']>[0]) {
    const { dialect } = this.connection;
    const now = this.#now;
    const rows = await this.connection.all<ExpectationRow>(
      `WITH due AS MATERIALIZED (
         SELECT x.seq FROM ${this.#by('poll')} WHERE x.next_poll_at <= ${now} AND ${this.#unpaused}
         ORDER BY x.next_poll_at LIMIT $1 ${dialect.skipLocked('x')}
       )
       UPDATE ${this.#table} SET lost_polls = lost_polls + CASE WHEN leased THEN 1 ELSE 0 END, leased = true,
         token = token + 1, next_poll_at = ${now} + $2::bigint
       WHERE seq IN (SELECT seq FROM due) AND ${dialect.commits('lazily')}
       RETURNING *, ${this.#computed}`,
      [limit, leaseMs],
    );
    return rows.map((row) => ({
      seq: row.seq,
      token: row.token,
      expectation: this.#toExpectation(row),
    }));
  }

  async releasePolls(leases: readonly PollLease[], dueInMs: readonly number[]): Promise<void> {
    const { dialect } = this.connection;
    const released = leases.map(({ seq, token }, index) => [seq, token, toDelay(dueInMs[index])]);
    // The limit is for the planner of PostgreSQL, which does not know how many elements a JSON array has.
    await this.connection.run(
      `WITH released AS MATERIALIZED (
         SELECT (j.value ->> 0)::bigint AS seq, (j.value ->> 1)::bigint AS token, (j.value ->> 2)::bigint AS delay_ms
         FROM ${dialect.elements('$1::json')} LIMIT $2
       )
       UPDATE ${this.#table} AS x SET leased = false,
         next_poll_at = CASE WHEN state <> 'cancelled' THEN ${this.#now} + r.delay_ms END
       FROM released r WHERE x.seq = r.seq AND x.token = r.token AND x.leased AND ${dialect.commits('lazily')}`,
      [JSON.stringify(released), released.length],
    );
    // A process that postpones polls claims these polls itself, so it wakes no other process.
    if (released.some(([, , ms]) => ms === 0)) this.wake(0);
  }

  async settlePoll(settlement: PollSettlement): Promise<SettledPoll> {
    let settled: SettledPoll | undefined;
    while (settled === undefined) settled = await this.#trySettle(settlement);
    if (settled.receipt?.pending) this.wake(0);
    else if (settled.nextPollInMs !== null) this.wake(settled.nextPollInMs);
    return settled;
  }

  async pollNow(
    selections: readonly ExpectationName[],
    dueInMs: readonly number[],
  ): Promise<number> {
    const { dialect } = this.connection;
    const selected = selections.map(({ company, reference }, index) => [
      ...nameOf(company, reference),
      toDelay(dueInMs[index]),
    ]);
    const now = this.#now;
    const changed = await this.connection.run(
      `WITH selected AS MATERIALIZED (
         SELECT j.value ->> 0 AS reference, j.value ->> 1 AS company, ${now} + (j.value ->> 2)::bigint AS due_at
         FROM ${dialect.elements('$1::json')} LIMIT $2
       ), free AS MATERIALIZED (
         SELECT x.seq, s.due_at FROM selected s CROSS JOIN ${this.#table} x
         WHERE x.reference = s.reference AND x.company = s.company AND x.state <> 'cancelled'
           AND NOT (x.leased AND x.next_poll_at > ${now})
         ORDER BY x.seq ${dialect.skipLocked('x')}
       )
       UPDATE ${this.#table} AS x SET leased = false,
         next_poll_at = CASE WHEN next_poll_at < f.due_at THEN next_poll_at ELSE f.due_at END,
         lost_polls = CASE WHEN lost_polls > 2 THEN 2 ELSE lost_polls END
       FROM free f WHERE x.seq = f.seq`,
      [JSON.stringify(selected), selected.length],
    );
    if (changed > 0) this.wake(0);
    return changed;
  }

  async nextPollInMs(): Promise<number | null> {
    const next = await this.connection.get<{ readonly in_ms: number }>(
      `SELECT x.next_poll_at - ${this.#now} AS in_ms FROM ${this.#by('poll')}
       WHERE x.next_poll_at IS NOT NULL AND ${this.#unpaused} ORDER BY x.next_poll_at LIMIT 1`,
    );
    return next?.in_ms ?? null;
  }

  async counts() {
    const count = (index: string, condition: string): string =>
      `(SELECT count(*) FROM (SELECT 1 FROM ${this.#by(index)} WHERE ${condition} LIMIT ${COUNT_CAP + 1}) c)`;
    const row = await this.connection.get<Record<'waiting' | 'unpaid' | 'unknown', number>>(
      `SELECT ${count('state', "state = 'waiting'")} AS waiting,
         ${count('overdue', "state = 'overdue' AND last_result = 'pending'")} AS unpaid,
         ${count('overdue', "state = 'overdue' AND last_result = 'unknown'")} AS unknown`,
    );
    return {
      waiting: capped(row!.waiting),
      overdueUnpaid: capped(row!.unpaid),
      overdueUnknown: capped(row!.unknown),
    };
  }

  /**
   * Settles a poll. Returns `undefined` if it has to be called again, because the expectation or the stored events of
   * its transaction have changed in the meantime.
   */
  async #trySettle(settlement: PollSettlement): Promise<SettledPoll | undefined> {
    const { lease, outcome, eventTypes } = settlement;
    const alone = pollChange(settlement, 'waiting', []);
    if (outcome.result !== 'event' && outcome.next !== 'overdue') {
      const state = await this.recordPoll(alone, settlement);
      return settledPoll(alone, state ?? 'waiting', state);
    }
    const before = await this.connection.get<PolledRow>(
      `SELECT company, state, transaction_id FROM ${this.#table} WHERE seq = $1 AND token = $2 AND leased`,
      [lease.seq, lease.token],
    );
    if (before === undefined) return settledPoll(alone, 'waiting', undefined);
    const { dialect } = this.connection;
    const key = `${dialect.indexed('e.ordering_key')} = ${dialect.indexed('$1::text')} AND e.ordering_key = $1::text`;
    const stored = await this.connection.all<{ readonly id: string; readonly eventType: string }>(
      `SELECT e.id, e.event_type AS "eventType" FROM ${dialect.table('event')} e ${dialect.index('event_once')}
       WHERE ${key} AND ${countsOnce('e.')} AND e.company = $2 AND ${dialect.isOneOf('e.event_type', '$3::text[]')}`,
      [before.transaction_id, before.company, eventTypes.map(toStored)],
    );
    const named = stored.map(({ id, eventType }) => ({
      id: fromStored(id),
      eventType: fromStored(eventType),
    }));
    const change = pollChange(settlement, before.state, named);
    const { state, receipt } = await this.apply(change, settlement, before);
    const isFinal = state !== undefined || receipt?.outcome === 'outdated';
    return isFinal ? settledPoll(change, before.state, state, receipt) : undefined;
  }

  /** Records a poll. Returns the new state of the expectation; `undefined` if the lease is not valid any more. */
  protected async recordPoll(
    change: PollChange,
    settlement: PollSettlement,
  ): Promise<ExpectationState | undefined> {
    const row = await this.connection.get<Pick<ExpectationRow, 'state'>>(
      recordStatement(this.connection.dialect),
      recordValues(change, settlement),
    );
    return row?.state;
  }

  async #slice(
    filter: ExpectationFilter,
    few: readonly number[] | null,
    after: Position | null,
    limit: number,
  ): Promise<{ rows: ExpectationRow[]; next: Position | null }> {
    const conditions = conditionsOf(filter, few, this.connection.dialect);
    // The first condition with an index selects expectations, which are then checked against the other conditions.
    const source = conditions.find(([index]) => index !== null) ?? ALL;
    const others = conditions.filter((condition) => condition !== source);
    const size = others.length === 0 ? Math.min(SLICE, limit) : SLICE;
    const list = new ParameterList();
    const within = whereAll([source, ...timesOf(filter, after)], list);
    const slice = `FROM ${this.#by(source[0])} WHERE ${within} ${ORDER}`;
    const values = [...list.values];
    const rows = await this.connection.all<ExpectationRow>(
      `SELECT x.*, ${this.#computed} FROM (SELECT x.* ${slice} LIMIT ${size}) x
       WHERE ${whereAll(others, list)} ${ORDER} LIMIT ${list.add(limit, 'bigint')}`,
      list.values,
    );
    if (rows.length === limit) return { rows, next: rows.at(-1)! };
    if (others.length === 0 && rows.length < size) return { rows, next: null };
    const next = await this.connection.get<Position>(
      `SELECT x.created_at, x.seq ${slice} LIMIT 1 OFFSET ${size - 1}`,
      values,
    );
    return { rows, next: next ?? null };
  }

  /**
   * Returns the numbers of the expectations whose reference or transaction id begins with a text; `null` if there are
   * too many such expectations.
   */
  async #fewBeginningWith(text: string): Promise<readonly number[] | null> {
    const found: number[] = [];
    for (const condition of prefixesOf(text)) {
      const list = new ParameterList();
      const rows = await this.connection.all<{ readonly seq: number }>(
        `SELECT x.seq FROM ${this.#by(condition[0])} WHERE ${whereAll([condition], list)} LIMIT ${SLICE}`,
        list.values,
      );
      found.push(...rows.map(({ seq }) => seq));
    }
    return found.length < SLICE ? found : null;
  }

  #find(company: string, reference: string): Promise<ExpectationRow | undefined> {
    return this.connection.get<ExpectationRow>(
      `SELECT x.*, ${this.#computed} FROM ${this.#table} x WHERE ${NAMED}`,
      nameOf(company, reference),
    );
  }

  /** Returns SQL for the table with the alias `x`. The database reads the table in the order of the index. */
  #by(index: string | null): string {
    return `${this.#table} x ${index ? this.connection.dialect.index(`expectation_${index}`) : ''}`;
  }

  /**
   * SQL for the time by the store clock. The SQL is a subquery, so that PostgreSQL computes the time only once and can
   * look up the time in an index.
   */
  get #now(): string {
    return `(SELECT ${this.connection.dialect.now('store')})`;
  }

  /** SQL for the columns of {@link ExpectationRow} that depend on the current time. */
  get #computed(): string {
    const now = this.#now;
    return `${now} - created_clock AS age_ms, request_until <= ${now} AS request_ended`;
  }

  get #unpaused(): string {
    const pause = this.connection.dialect.table('pause');
    return `NOT EXISTS (SELECT 1 FROM ${pause} WHERE handler IN ('*', '${POLL_HANDLER}'))`;
  }

  #toExpectation(row: ExpectationRow): StoredExpectation {
    const { created_at, due_in_ms, last_poll_at, fulfilled_at, cancelled_at, next_poll_at } = row;
    const text = (stored: string | null): string | null => stored && fromStored(stored);
    const nextPollAt = row.leased || next_poll_at === null ? null : next_poll_at;
    return {
      company: fromStored(row.company),
      reference: fromStored(row.reference),
      transactionId: text(row.transaction_id),
      dueBy: due_in_ms === null ? null : new Date(created_at + due_in_ms),
      schedule: JSON.parse(row.schedule) as number[],
      state: row.state,
      request: requestStateOf(row),
      createdAt: new Date(created_at),
      ageMs: Math.max(0, row.age_ms),
      polls: row.polls,
      lostPolls: row.lost_polls,
      lastPoll:
        last_poll_at === null
          ? null
          : { at: new Date(last_poll_at), result: row.last_result!, detail: text(row.last_detail) },
      nextPollAt:
        nextPollAt === null ? null : new Date(nextPollAt + this.connection.dialect.wallOffsetMs),
      fulfilled:
        fulfilled_at === null
          ? null
          : {
              at: new Date(fulfilled_at),
              by: row.fulfilled_by!,
              eventId: fromStored(row.fulfilled_id!),
              eventType: fromStored(row.fulfilled_type!),
            },
      cancelled:
        cancelled_at === null
          ? null
          : { at: new Date(cancelled_at), by: text(row.cancelled_by), note: text(row.cancel_note) },
      contradiction: text(row.contradiction),
      otherEventId: text(row.other_event_id),
    };
  }
}

/**
 * Returns the statements of `expect`. Run the statements in this order until one of them changes a row; that statement
 * has stored the expectation. The statements also run in transactions of the application, with any isolation level. The
 * statements only insert a row or reopen a cancelled row. Therefore, only a process that stores the same reference
 * waits for such a transaction. Both statements write before they read: on SQLite, a transaction that has read cannot
 * get the write lock after another process has written.
 */
export function expectStatements(
  dialect: SqlDialect,
  { company, reference, transactionId, dueInMs, schedule, firstPollInMs }: NewExpectation,
): { readonly sql: readonly string[]; readonly values: readonly SqlValue[] } {
  const [wall, clock] = [dialect.now('wall'), dialect.now('store')];
  const columns = {
    reference: '$1::text',
    company: '$2::text',
    transaction_id: '$3::text',
    created_at: wall,
    created_clock: clock,
    due_in_ms: '$4::bigint',
    schedule: '$5::text',
    next_poll_at: `${clock} + $6::bigint`,
  };
  const table = dialect.table('expectation');
  // An expectation must be durable before the payment is requested.
  const durable = dialect.commits('durably');
  const insert = `INSERT INTO ${table} (${Object.keys(columns).join(', ')})
    SELECT ${Object.values(columns).join(', ')} WHERE ${durable} ON CONFLICT DO NOTHING`;
  const set = Object.entries(columns).map(([column, value]) => `${column} = ${value}`);
  const open = `UPDATE ${table} SET ${set.join(', ')}, state = 'waiting', leased = false, token = token + 1,
      lost_polls = 0, polls = 0, last_poll_at = NULL, last_result = NULL, last_detail = NULL, contradiction = NULL,
      cancelled_at = NULL, cancelled_by = NULL, cancel_note = NULL, other_event_id = NULL, request = CASE request WHEN 'running' THEN request END
    WHERE ${NAMED} AND state = 'cancelled' AND ${durable}`;
  const values = [
    ...nameOf(company, reference),
    transactionId && toStored(transactionId),
    dueInMs,
    JSON.stringify(schedule),
    toDelay(firstPollInMs),
  ];
  return { sql: [insert, open], values };
}

export type PolledRow = Pick<ExpectationRow, 'company' | 'state' | 'transaction_id'>;

/** Returns the first parameters of {@link recordStatement}. */
export function recordValues(
  { result, detail, delayMs }: PollChange,
  { lease, outcome, keepLost }: PollSettlement,
) {
  const line = detail && toStored(detail);
  const delay = delayMs === null ? null : toDelay(delayMs);
  const { seq, token } = lease;
  return [seq, token, result, line, keepLost, delay, outcome.next === 'overdue'] as const;
}

/** Returns the statement that records a poll, if its lease is valid. The statement returns the new state. */
export function recordStatement(dialect: SqlDialect): string {
  return `UPDATE ${dialect.table('expectation')} SET polls = polls + 1, leased = false, last_result = $3::text,
      last_detail = $4::text, last_poll_at = ${dialect.now('wall')},
      lost_polls = CASE WHEN $5::boolean THEN lost_polls ELSE 0 END,
      next_poll_at = CASE WHEN ${OPEN} THEN ${dialect.now('store')} + $6::bigint END,
      state = CASE WHEN $7::boolean AND state = 'waiting' THEN 'overdue' ELSE state END,
      contradiction = CASE $3::text WHEN 'contradiction' THEN $4::text ELSE contradiction END
    WHERE seq = $1 AND token = $2 AND leased RETURNING state`;
}

function requestStateOf({ transaction_id, request, request_ended }: ExpectationRow): RequestState {
  if (transaction_id !== null) return 'accepted';
  return request === 'running' && request_ended ? 'unknown' : (request ?? 'never');
}

/** A position in the list of expectations: the position of the last row of a page. */
interface Position {
  readonly created_at: number;
  readonly seq: number;
}

const ORDER = 'ORDER BY x.created_at DESC, x.seq DESC';

/** @throws TypeError if `after` is not a cursor of this list. */
function toPosition(after: string): Position {
  const [, createdAt, seq] = parseCursor(after, /^(-?\d{1,16})\.(\d{1,16})$/);
  return { created_at: Number(createdAt), seq: Number(seq) };
}

/** A condition that every expectation meets, with the index in the order of the list. */
const ALL: Condition = ['created', 'true'];

/** Returns the conditions of a filter, except its times. The conditions that few expectations meet come first. */
function conditionsOf(
  { company, transactionId, state, overdue, fulfilledBy, contradictory, search }: ExpectationFilter,
  few: readonly number[] | null,
  dialect: SqlDialect,
): Condition[] {
  const found: Condition[] = [];
  if (transactionId !== undefined) {
    found.push(['transaction', 'x.transaction_id = ?::text', toStored(transactionId)]);
  }
  if (few !== null) found.push(['', dialect.isOneOf('x.seq', '?::bigint[]'), few]);
  if (contradictory) found.push(['contradiction', 'x.contradiction IS NOT NULL']);
  // State and source are literals, not parameters, because the planner uses a partial index only for known values.
  if (overdue !== undefined) {
    const result = overdue === 'unpaid' ? 'pending' : 'unknown';
    found.push(['overdue', "x.state = 'overdue' AND x.last_result = ?::text", result]);
  }
  if (fulfilledBy === 'poll') found.push(['by_poll', "x.fulfilled_by = 'poll'"]);
  if (state !== undefined) found.push(['state', 'x.state = ?::text', state]);
  if (fulfilledBy === 'webhook') found.push([null, "x.fulfilled_by = 'webhook'"]);
  if (company !== undefined) found.push([null, 'x.company = ?::text', toStored(company)]);
  if (search && few === null) {
    const prefixes = prefixesOf(search);
    const either = prefixes.map(([, sql]) => sql).join(' OR ');
    found.push([null, `(${either})`, ...prefixes.flatMap(([, , ...values]) => values)]);
  }
  return found;
}

/** Returns the conditions of a search. A search finds an expectation that meets at least one of these conditions. */
function prefixesOf(text: string): Condition[] {
  const begins = (column: string, start: string): [string, ...string[]] => [
    `${column} >= ?::text AND ${column} < ?::text`,
    start,
    start + LAST,
  ];
  const start = toStored(text);
  return [
    ['lower', ...begins('lower(x.reference)', lowerCase(start))],
    ['transaction', ...begins('x.transaction_id', start)],
  ];
}

function timesOf({ from, to }: ExpectationFilter, after: Position | null): Condition[] {
  const found: Condition[] = [];
  if (from !== undefined) found.push([null, 'x.created_at >= ?::bigint', from.getTime()]);
  // If the position of the page is before `to`, the condition on `to` is left out. Otherwise, SQLite would read the
  // index from `to` on.
  if (to !== undefined && !(after !== null && after.created_at < to.getTime())) {
    found.push([null, 'x.created_at < ?::bigint', to.getTime()]);
  }
  if (after !== null) {
    const { created_at: at, seq } = after;
    found.push([null, 'x.created_at <= ?::bigint', at]);
    found.push([null, '(x.created_at, x.seq) < (?::bigint, ?::bigint)', at, seq]);
  }
  return found;
}

/** Returns a delay in whole milliseconds, from 0 to {@link MAX_DELAY_MS}. */
function toDelay(ms = 0): number {
  return Math.ceil(Math.min(Math.max(0, ms), MAX_DELAY_MS));
}
