import { contradictionDetail, POLL_HANDLER } from '../../../inbox/store/expectation-store.js';
import type {
  ClaimedPoll,
  EventSource,
  ExpectationFilter,
  ExpectationStore,
  PollResult,
  RequestState,
  SettledPoll,
  StoredExpectation,
} from '../../../inbox/store/inbox-store.js';
import { parseCursor } from '../../../inbox/store/list-arguments.js';
import { boundedError, capped, COUNT_CAP } from '../../../inbox/store/stored-event.js';
import type { ConnectionSource } from '../connection/connection-source.js';
import { prepared } from '../connection/database-connection.js';
import type { PreparedStatement, ResultRow } from '../connection/database-connection.js';
import type { WakeNotifier } from '../connection/wake-notifications.js';
import { firstValueOf } from './commit.js';
import { deliveriesOf, newEventOf, RECEIVE_TYPES, valuesOf } from './receive-values.js';
import { RECEIPT_COLUMNS, RECEIVE_NAMES, RECEIVE_PARAMETERS, receiptsOf } from './receive.js';
import { BY_INDEX, countsOnce, indexed, isOnceOf, NOW_MS } from './schema.js';
import { ParameterList } from './search.js';
import { MAX_DUE_MS } from './settle.js';
import { fromStored, LAST, toDate, toStored } from './stored-rows.js';

/** The columns of an expectation `x` that {@link toExpectation} reads. */
const COLUMNS = `x.*, greatest(0, ${NOW_MS} - x.created_at) AS age_ms`;

const SETTLE_TYPES = [
  'bigint',
  'bigint',
  'text',
  'text',
  'float8',
  'boolean',
  'boolean',
  'text[]',
  'text',
];

/** The parts of the open store that {@link PostgresExpectations} uses. */
interface OpenInbox {
  readonly source: ConnectionSource;
  readonly notifier: WakeNotifier;
}

/** The expectations of a PostgreSQL inbox. */
export class PostgresExpectations implements ExpectationStore {
  readonly #settlePoll: PreparedStatement;
  readonly #claimPolls: PreparedStatement;

  constructor(
    private readonly open: () => OpenInbox,
    private readonly schema: string,
    /** How often each worker looks for deliveries that became due without a notification, in milliseconds. */
    private readonly pollMs: number,
  ) {
    const parameters = [...SETTLE_TYPES, ...RECEIVE_TYPES]
      .map((type, index) => `$${index + 1}::${type}`)
      .join(', ');
    this.#settlePoll = prepared(`SELECT * FROM ${schema}.settle_poll(${parameters})`);
    this.#claimPolls = prepared(
      `SELECT ${COLUMNS} FROM ${schema}.claim_polls($1::bigint, $2::bigint) x`,
    );
  }

  async expect(
    expectation: Parameters<ExpectationStore['expect']>[0],
    tx?: unknown,
  ): Promise<boolean> {
    const { company, reference, transactionId, dueInMs, schedule, firstPollInMs } = expectation;
    const values = [
      toStored(company),
      toStored(reference),
      toStored(transactionId ?? ''),
      dueInMs === null ? '' : String(dueInMs),
      JSON.stringify(schedule),
      String(Math.ceil(Math.min(firstPollInMs, MAX_DUE_MS))),
    ];
    const stored = Number(await this.#expect(values, tx)) === 1;
    // Not in the application's transaction: see WakeNotifier. It commits later, and workers find the poll themselves.
    if (stored && tx === undefined && firstPollInMs < this.pollMs) this.open().notifier.notify();
    return stored;
  }

  async attach(
    ...[company, reference, transactionId]: Parameters<ExpectationStore['attach']>
  ): ReturnType<ExpectationStore['attach']> {
    const { source, notifier } = this.open();
    const values = [company, reference, transactionId].map(toStored);
    const [row] = await source.query(
      `SELECT * FROM ${this.schema}.attach($1::text, $2::text, $3::text)`,
      values,
    );
    if (row!['o_due'] === 't') notifier.notify();
    return row!['o_outcome'] as Awaited<ReturnType<ExpectationStore['attach']>>;
  }

  async cancel(company: string, reference: string): Promise<boolean> {
    const rows = await this.open().source.query(
      `UPDATE ${this.schema}.expectation x SET state = 'cancelled', ${UNSCHEDULED}
        WHERE x.reference = $1 AND x.company = $2 AND ${IS_OPEN} RETURNING x.seq`,
      [toStored(reference), toStored(company)],
    );
    return rows.length > 0;
  }

  async startRequest(
    ...[company, reference, leaseMs]: Parameters<ExpectationStore['startRequest']>
  ): ReturnType<ExpectationStore['startRequest']> {
    const [row] = await this.open().source.query(
      `SELECT r.o_previous, r.o_token, ${COLUMNS}
         FROM ${this.schema}.start_request($1::text, $2::text, $3::bigint) r
         JOIN ${this.schema}.expectation x ON x.seq = r.o_seq`,
      [toStored(company), toStored(reference), leaseMs],
    );
    if (row === undefined) return undefined;
    return {
      expectation: toExpectation(row),
      previous: row['o_previous'] as RequestState,
      token: row['o_token'] == null ? null : Number(row['o_token']),
    };
  }

  async endRequest(
    ...[{ company, reference }, token, end]: Parameters<ExpectationStore['endRequest']>
  ): Promise<boolean> {
    const rows = await this.open().source.query(
      `UPDATE ${this.schema}.expectation x
          SET request = NULLIF(NULLIF($4::text, 'never'), 'cancelled'),
              state = CASE WHEN ${ENDS} THEN 'cancelled' ELSE x.state END,
              next_poll_at = CASE WHEN ${ENDS} AND NOT x.leased THEN NULL ELSE x.next_poll_at END
        WHERE x.reference = $1 AND x.company = $2 AND x.request = 'running' AND x.request_token = $3::bigint
       RETURNING x.seq`,
      [toStored(reference), toStored(company), token, end],
    );
    return rows.length > 0;
  }

  async find(company: string, reference: string): Promise<StoredExpectation | undefined> {
    const [row] = await this.open().source.query(
      `SELECT ${COLUMNS} FROM ${this.schema}.expectation x WHERE x.reference = $1 AND x.company = $2`,
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
    const conditions = conditionsOf(filter, values);
    if (after !== null) {
      const [, ms, seq] = parseCursor(after, /^(\d{1,15})-(\d{1,18})$/);
      conditions.push(
        `(x.created_at, x.seq) < (${values.add(ms!, 'bigint')}, ${values.add(seq!, 'bigint')})`,
      );
    }
    // One expectation more than requested: if there is one, there is a next page.
    const order = `ORDER BY x.created_at DESC, x.seq DESC LIMIT ${values.add(limit + 1, 'integer')}`;
    const pages = prefixConditions(filter.search, values).map((condition) => {
      const where = [...conditions, condition].join(' AND ');
      return `(SELECT x.* FROM ${this.schema}.expectation x WHERE ${where} ${order})`;
    });
    const rows = await this.open().source.query(
      `SELECT ${COLUMNS} FROM (${pages.join(' UNION ')}) x ${order}`,
      values.all,
    );
    const last = rows.length > limit ? rows[limit - 1] : undefined;
    return {
      expectations: rows.slice(0, limit).map(toExpectation),
      next: last ? `${last['created_at']}-${last['seq']}` : null,
    };
  }

  async claimPolls({
    limit,
    leaseMs,
  }: Parameters<ExpectationStore['claimPolls']>[0]): Promise<readonly ClaimedPoll[]> {
    const rows = await this.open().source.query(this.#claimPolls, [limit, leaseMs]);
    return rows.map((row) => ({
      seq: Number(row['seq']),
      token: Number(row['token']),
      expectation: toExpectation(row),
    }));
  }

  async releasePolls(
    ...[leases, dueInMs]: Parameters<ExpectationStore['releasePolls']>
  ): Promise<void> {
    const { source, notifier } = this.open();
    await source.query(
      `UPDATE ${this.schema}.expectation x SET leased = false,
              next_poll_at = CASE x.state WHEN 'cancelled' THEN NULL ELSE ${NOW_MS} + ceil(s.due_ms)::bigint END
         FROM unnest($1::bigint[], $2::bigint[], $3::float8[]) AS s (seq, token, due_ms),
              set_config('synchronous_commit', 'off', true)
        WHERE x.seq = s.seq AND x.token = s.token AND x.leased`,
      [
        leases.map(({ seq }) => seq),
        leases.map(({ token }) => token),
        leases.map((_, index) => Math.max(0, dueInMs[index] ?? 0)),
      ],
    );
    // A process that postpones polls claims them itself.
    if (dueInMs.some((ms) => ms <= 0)) notifier.notify();
  }

  async settlePoll({
    lease,
    outcome,
    event,
    eventTypes,
    keepLost,
  }: Parameters<ExpectationStore['settlePoll']>[0]): Promise<SettledPoll> {
    const { result, detail, next } = outcome;
    const events = event === null ? [] : [newEventOf(event, 0)];
    const deliveries = deliveriesOf(events);
    const { source, notifier } = this.open();
    const [found] = await source.query(this.#settlePoll, [
      lease.seq,
      lease.token,
      result,
      detail === null ? null : toStored(boundedError(detail)),
      typeof next === 'number' ? Math.min(Math.ceil(next), MAX_DUE_MS) : null,
      String(next === 'overdue'),
      String(keepLost),
      eventTypes.map(toStored),
      // The function replaces the placeholders.
      event && toStored(contradictionDetail(event.eventType, { id: '{id}', eventType: '{type}' })),
      ...valuesOf(events, deliveries),
    ]);
    const row = found!;
    const isReceived = row['o_received_ms'] != null;
    const receipt = isReceived ? (receiptsOf(events, deliveries, row).get(0) ?? null) : null;
    const nextMs = row['o_next_ms'];
    if (receipt?.pending || nextMs != null) notifier.notify();
    return {
      settled: row['o_settled'] === 't',
      result: row['o_result'] as PollResult,
      detail: row['o_detail'] == null ? null : fromStored(row['o_detail']),
      state: row['o_state'] as SettledPoll['state'],
      changed: row['o_changed'] === 't',
      nextPollInMs: nextMs == null ? null : Number(nextMs),
      receipt,
    };
  }

  async pollNow(
    ...[selections, dueInMs]: Parameters<ExpectationStore['pollNow']>
  ): Promise<number> {
    const { source, notifier } = this.open();
    const rows = await source.query(
      `WITH free AS MATERIALIZED (
         SELECT x.seq, ${NOW_MS} + ceil(s.due_ms)::bigint AS due
           FROM unnest($1::text[], $2::text[], $3::float8[]) AS s (company, reference, due_ms)
           JOIN ${this.schema}.expectation x ON x.reference = s.reference AND x.company = s.company
          WHERE x.state <> 'cancelled' AND NOT (x.leased AND x.next_poll_at > ${NOW_MS})
          ORDER BY x.seq FOR UPDATE OF x SKIP LOCKED
       )
       UPDATE ${this.schema}.expectation x
          SET next_poll_at = least(x.next_poll_at, f.due), lost_polls = least(x.lost_polls, 2), leased = false
         FROM free f WHERE x.seq = f.seq RETURNING x.seq`,
      [
        selections.map(({ company }) => toStored(company)),
        selections.map(({ reference }) => toStored(reference)),
        selections.map((_, index) => Math.max(0, dueInMs[index] ?? 0)),
      ],
    );
    if (rows.length > 0) notifier.notify();
    return rows.length;
  }

  async nextPollInMs(): Promise<number | null> {
    const [row] = await this.open().source.query(
      prepared(`SELECT ${this.schema}.next_poll_in_ms() AS next_ms`),
    );
    return row!['next_ms'] == null ? null : Number(row!['next_ms']);
  }

  async counts(): ReturnType<ExpectationStore['counts']> {
    const text = `SELECT * FROM ${this.schema}.expectation_counts()`;
    const [row] = await this.open().source.query(text);
    return {
      waiting: capped(Number(row!['o_waiting'])),
      overdueUnpaid: capped(Number(row!['o_unpaid'])),
      overdueUnknown: capped(Number(row!['o_unknown'])),
    };
  }

  /** Runs the function `expect`, in the transaction `tx` if it is given. All drivers can pass texts. */
  async #expect(values: string[], tx: unknown): Promise<unknown> {
    const parameters = values.map((_, index) => `$${index + 1}::text`).join(', ');
    const text = `SELECT ${this.schema}.expect(${parameters}) AS outcome`;
    if (tx === undefined) return firstValueOf(await this.open().source.query(text, values));
    const { query } = (tx ?? {}) as { query?: unknown };
    if (typeof query !== 'function') {
      throw new TypeError(
        '"tx" of expect() needs a method query(text, values), as a client of "pg" and an EntityManager of TypeORM have it.',
      );
    }
    return firstValueOf((await query.call(tx, text, values)) as readonly unknown[]);
  }
}

/** The expectation of a row with {@link COLUMNS}. */
function toExpectation(row: ResultRow): StoredExpectation {
  const text = (column: string): string | null => {
    const value = row[column];
    return value == null ? null : fromStored(value);
  };
  const date = (column: string): Date | null => (row[column] == null ? null : toDate(row[column]));
  const [lastPollAt, fulfilledAt] = [date('last_poll_at'), date('fulfilled_at')];
  const dueInMs = row['due_in_ms'];
  return {
    company: text('company')!,
    reference: text('reference')!,
    transactionId: text('transaction_id'),
    dueBy: dueInMs == null ? null : toDate(Number(row['created_at']) + Number(dueInMs)),
    schedule: JSON.parse(row['schedule']!) as number[],
    state: row['state'] as StoredExpectation['state'],
    createdAt: date('created_at')!,
    ageMs: Number(row['age_ms']),
    polls: Number(row['polls']),
    lostPolls: Number(row['lost_polls']),
    lastPoll: lastPollAt && {
      at: lastPollAt,
      result: row['last_result'] as PollResult,
      detail: text('last_detail'),
    },
    nextPollAt: row['leased'] === 't' ? null : date('next_poll_at'),
    fulfilled: fulfilledAt && {
      at: fulfilledAt,
      by: row['fulfilled_by'] as EventSource,
      eventId: text('fulfilled_id')!,
      eventType: text('fulfilled_type')!,
    },
    contradiction: text('contradiction'),
    otherEventId: text('other_event_id'),
  };
}

/** SQL: whether an event can fulfil an expectation `x`. */
const IS_OPEN = `x.state IN ('waiting', 'overdue')`;

/** SQL: removes the next poll of an expectation `x`. A poll that runs keeps its lease. */
const UNSCHEDULED = 'next_poll_at = CASE WHEN x.leased THEN x.next_poll_at END';

/** SQL: whether the end of a request cancels the expectation `x`. */
const ENDS = `($4::text = 'cancelled' AND x.state = 'waiting' AND x.transaction_id IS NULL)`;

/** SQL conditions of a filter without its search, for an expectation `x`. */
function conditionsOf(filter: ExpectationFilter, values: ParameterList): string[] {
  const { company, transactionId, state, fulfilledBy, contradictory, from, to } = filter;
  const time = (value: Date): string => values.add(value.getTime(), 'bigint');
  const found: string[] = [];
  if (company !== undefined) found.push(`x.company = ${values.add(toStored(company), 'text')}`);
  if (transactionId !== undefined) {
    found.push(`x.transaction_id = ${values.add(toStored(transactionId), 'text')}`);
  }
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
function prefixConditions(search: string | undefined, values: ParameterList): string[] {
  if (search === undefined || search === '') return ['true'];
  const from = values.add(toStored(search), 'text');
  const to = values.add(toStored(search) + LAST, 'text');
  const begins = (column: string): string => `${column} >= ${from} AND ${column} < ${to}`;
  return [begins('x.reference'), begins('x.transaction_id')];
}

/** SQL: the columns of an expectation `x` that the event `e` fulfils. */
const FULFILLED_BY = `state = 'fulfilled', fulfilled_at = ${NOW_MS}, fulfilled_by = e.source, fulfilled_id = e.id,
           fulfilled_type = e.event_type, fulfilled_transaction = e.ordering_key, ${UNSCHEDULED}`;

/**
 * The function `expect` also runs in transactions of the application, with any isolation level. It only inserts a row, or
 * opens a cancelled one, so no other process waits for such a transaction, except for one that stores the same
 * reference. It returns a number, which all drivers return alike.
 */
const expectFunctions = (schema: string): string => `
CREATE FUNCTION ${schema}.expect(p_company text, p_reference text, p_transaction text, p_due_in_ms text,
  p_schedule text, p_first_ms text) RETURNS integer
LANGUAGE plpgsql VOLATILE ${BY_INDEX}
AS $expect$
DECLARE
  v_now CONSTANT bigint := ${NOW_MS};
BEGIN
  -- An expectation must be durable before the payment is requested.
  IF current_setting('synchronous_commit') = 'off' THEN
    PERFORM set_config('synchronous_commit', 'on', true);
  END IF;
  INSERT INTO ${schema}.expectation (company, reference, transaction_id, created_at, due_in_ms, schedule, next_poll_at)
  VALUES (p_company, p_reference, NULLIF(p_transaction, ''), v_now, NULLIF(p_due_in_ms, '')::bigint, p_schedule,
    v_now + p_first_ms::bigint)
  ON CONFLICT DO NOTHING;
  IF FOUND THEN RETURN 1; END IF;
  UPDATE ${schema}.expectation x
     SET transaction_id = NULLIF(p_transaction, ''), created_at = v_now, due_in_ms = NULLIF(p_due_in_ms, '')::bigint,
         schedule = p_schedule, next_poll_at = v_now + p_first_ms::bigint, state = 'waiting', leased = false,
         token = x.token + 1, lost_polls = 0, polls = 0, last_poll_at = NULL, last_result = NULL, last_detail = NULL,
         contradiction = NULL, other_event_id = NULL, request = CASE x.request WHEN 'running' THEN 'running' END
   WHERE x.reference = p_reference AND x.company = p_company AND x.state = 'cancelled';
  RETURN FOUND::integer;
END $expect$;

CREATE FUNCTION ${schema}.attach(p_company text, p_reference text, p_transaction text, OUT o_outcome text,
  OUT o_due boolean)
LANGUAGE plpgsql VOLATILE ${BY_INDEX}
AS $attach$
DECLARE
  v ${schema}.expectation;
  v_other boolean;
BEGIN
  o_due := false;
  SELECT * INTO v FROM ${schema}.expectation x WHERE x.reference = p_reference AND x.company = p_company FOR UPDATE;
  o_outcome := CASE WHEN NOT FOUND THEN 'unknown' WHEN v.state = 'cancelled' THEN 'cancelled'
                    WHEN v.transaction_id IS NULL OR v.transaction_id = p_transaction THEN 'attached'
                    ELSE 'conflict' END;
  IF o_outcome <> 'attached' OR v.transaction_id IS NOT NULL THEN RETURN; END IF;
  -- An event of another transaction fulfilled it by its reference.
  v_other := v.state = 'fulfilled' AND v.fulfilled_transaction IS DISTINCT FROM p_transaction;
  o_due := v_other OR v.state = 'overdue';
  UPDATE ${schema}.expectation x
     SET transaction_id = p_transaction,
         next_poll_at = CASE WHEN o_due AND NOT x.leased THEN ${NOW_MS} ELSE x.next_poll_at END
   WHERE x.seq = v.seq;
  IF v_other THEN
    UPDATE ${schema}.expectation x
       SET state = 'waiting', other_event_id = x.fulfilled_id, fulfilled_at = NULL, fulfilled_by = NULL,
           fulfilled_id = NULL, fulfilled_type = NULL, fulfilled_transaction = NULL
     WHERE x.seq = v.seq;
  END IF;
END $attach$;

CREATE FUNCTION ${schema}.start_request(p_company text, p_reference text, p_lease_ms bigint)
RETURNS TABLE (o_seq bigint, o_previous text, o_token bigint)
LANGUAGE plpgsql VOLATILE ${BY_INDEX}
AS $start$
DECLARE
  v_now CONSTANT bigint := ${NOW_MS};
  v ${schema}.expectation;
BEGIN
  SELECT * INTO v FROM ${schema}.expectation x WHERE x.reference = p_reference AND x.company = p_company FOR UPDATE;
  IF NOT FOUND THEN RETURN; END IF;
  o_seq := v.seq;
  o_previous := CASE WHEN v.transaction_id IS NOT NULL THEN 'accepted'
                     WHEN v.request = 'running' AND v.request_until <= v_now THEN 'unknown'
                     ELSE COALESCE(v.request, 'never') END;
  IF v.state IN ('waiting', 'overdue') AND o_previous NOT IN ('running', 'accepted') THEN
    o_token := v.request_token + 1;
    UPDATE ${schema}.expectation x SET request = 'running', request_until = v_now + p_lease_ms, request_token = o_token
     WHERE x.seq = v.seq;
  END IF;
  RETURN NEXT;
END $start$;
`;

/**
 * Fulfils the expectations of received events, after all other statements of `receive` that lock rows. It locks
 * expectations in their order, so that no two transactions can deadlock. p_seqs has the number of each event that was
 * stored now; of the others, those fulfil that are duplicates of a stored event. Returns an array of the position of the
 * event and the fields of the expectation. The function inherits the settings of those that call it; see BY_INDEX.
 */
const fulfilFunction = (schema: string): string => `
CREATE FUNCTION ${schema}.fulfil(p_seqs bigint[], p_companies text[], p_ids text[], p_once boolean[], p_types text[],
  p_keys text[], p_orderings uuid[], p_references text[], p_fulfils boolean[], p_digests bytea[]) RETURNS json
LANGUAGE plpgsql VOLATILE
AS $fulfil$
DECLARE
  v_expected bigint[];
  v_received bigint[];
  v_positions bigint[];
  v_fulfilled json;
BEGIN
  SELECT array_agg(f.expected), array_agg(f.event), array_agg(f.position) INTO v_expected, v_received, v_positions
    FROM (
      SELECT DISTINCT ON (x.seq) x.seq AS expected, COALESCE(i.seq, k.seq) AS event, i.position
        FROM unnest(p_seqs, p_companies, p_ids, p_once, p_types, p_keys, p_orderings, p_references, p_fulfils, p_digests)
          WITH ORDINALITY AS i (seq, company, id, once, event_type, ordering_key, ordering, reference, fulfils, digest, position)
       CROSS JOIN LATERAL (
         SELECT t.seq, true AS own FROM ${schema}.expectation t
          WHERE t.transaction_id = i.ordering_key AND t.company = i.company
         UNION ALL
         SELECT r.seq, r.transaction_id IS NULL FROM ${schema}.expectation r
          WHERE r.reference = i.reference AND r.company = i.company
       ) x
        LEFT JOIN LATERAL (
          SELECT y.seq, y.same FROM (
            SELECT a.seq, a.digest = i.digest AS same, 1 AS rank FROM ${schema}.event a
             WHERE a.company = i.company AND a.id = i.id
            UNION ALL
            SELECT b.seq, true, 2 FROM ${schema}.event b WHERE i.once AND ${isOnceOf('b', 'i')}
          ) y WHERE i.seq IS NULL ORDER BY y.rank LIMIT 1
        ) k ON k.same
       WHERE i.fulfils AND COALESCE(i.seq, k.seq) IS NOT NULL
       ORDER BY x.seq, x.own DESC, i.position
    ) f;
  IF v_expected IS NULL THEN RETURN NULL; END IF;
  PERFORM FROM ${schema}.expectation x WHERE x.seq = ANY (v_expected) AND ${IS_OPEN} ORDER BY x.seq FOR UPDATE;
  IF FOUND THEN
    WITH fulfilled AS (
      UPDATE ${schema}.expectation x
         SET ${FULFILLED_BY}
        FROM unnest(v_expected, v_received, v_positions) AS f (expected, event, position)
        JOIN ${schema}.event e ON e.seq = f.event
       WHERE x.seq = f.expected AND ${IS_OPEN}
         AND (x.transaction_id IS NULL OR x.transaction_id IS NOT DISTINCT FROM e.ordering_key)
      RETURNING f.position, x.reference, x.transaction_id, x.fulfilled_by
    )
    SELECT json_agg(json_build_array(f.position, f.reference, f.transaction_id, f.fulfilled_by)) INTO v_fulfilled
      FROM fulfilled f;
  END IF;
  -- An expectation of another transaction with the same reference only notes the event, unless it is locked.
  WITH free AS MATERIALIZED (
    SELECT x.seq FROM ${schema}.expectation x
     WHERE x.seq = ANY (v_expected) AND x.state <> 'cancelled' ORDER BY x.seq FOR UPDATE SKIP LOCKED
  )
  UPDATE ${schema}.expectation x SET other_event_id = e.id
    FROM free n JOIN unnest(v_expected, v_received) AS f (expected, event) ON f.expected = n.seq
    JOIN ${schema}.event e ON e.seq = f.event
   WHERE x.seq = n.seq AND COALESCE(x.transaction_id, x.fulfilled_transaction) <> COALESCE(e.ordering_key, '');
  RETURN v_fulfilled;
END $fulfil$;
`;

/**
 * Polls. `settle_poll` stores an event before it locks its expectation, because `receive` locks rows in this order too.
 * It decides after it has the lock, and undoes the receipt of an event that must not be stored.
 */
const pollFunctions = (schema: string): string => `
CREATE FUNCTION ${schema}.claim_polls(p_limit bigint, p_lease_ms bigint) RETURNS SETOF ${schema}.expectation
LANGUAGE plpgsql VOLATILE ${BY_INDEX}
AS $claim$
DECLARE
  v_now CONSTANT bigint := ${NOW_MS};
BEGIN
  IF EXISTS (SELECT FROM ${schema}.pause p WHERE p.handler IN ('*', '${POLL_HANDLER}')) THEN RETURN; END IF;
  -- Receives share the log of the database, so claims do not wait for the disk. A claim that is lost is made again.
  PERFORM set_config('synchronous_commit', 'off', true);
  RETURN QUERY
  WITH due AS MATERIALIZED (
    SELECT x.seq FROM ${schema}.expectation x WHERE x.next_poll_at <= v_now
     ORDER BY x.next_poll_at LIMIT p_limit FOR UPDATE SKIP LOCKED
  )
  UPDATE ${schema}.expectation x
     SET lost_polls = x.lost_polls + x.leased::integer, leased = true, token = x.token + 1,
         next_poll_at = v_now + p_lease_ms
    FROM due d WHERE x.seq = d.seq
  RETURNING x.*;
END $claim$;

CREATE FUNCTION ${schema}.next_poll_in_ms() RETURNS bigint
LANGUAGE plpgsql STABLE ${BY_INDEX}
AS $next$
BEGIN
  IF EXISTS (SELECT FROM ${schema}.pause p WHERE p.handler IN ('*', '${POLL_HANDLER}')) THEN RETURN NULL; END IF;
  RETURN (SELECT x.next_poll_at - ${NOW_MS} FROM ${schema}.expectation x WHERE x.next_poll_at IS NOT NULL
           ORDER BY x.next_poll_at LIMIT 1);
END $next$;

-- The first stored event of the transaction of an expectation that has one of these types and counts, other than p_except.
CREATE FUNCTION ${schema}.stored_event(p_company text, p_transaction text, p_types text[], p_except text,
  OUT o_id text, OUT o_type text)
LANGUAGE plpgsql STABLE ${BY_INDEX}
AS $stored$
BEGIN
  SELECT e.id, e.event_type INTO o_id, o_type FROM ${schema}.event e
   WHERE ${indexed('e.ordering_key')} = ${indexed('p_transaction')} AND ${countsOnce('e')}
     AND e.ordering_key = p_transaction AND e.company = p_company AND e.event_type = ANY (p_types)
     AND e.event_type IS DISTINCT FROM p_except
   ORDER BY e.seq LIMIT 1;
END $stored$;

CREATE FUNCTION ${schema}.settle_poll(p_seq bigint, p_token bigint, p_result text, p_detail text, p_next_ms float8,
  p_overdue boolean, p_keep_lost boolean, p_event_types text[], p_contradiction text, ${RECEIVE_PARAMETERS})
RETURNS TABLE (o_settled boolean, o_result text, o_detail text, o_state text, o_changed boolean, o_next_ms bigint,
  ${RECEIPT_COLUMNS})
LANGUAGE plpgsql VOLATILE ${BY_INDEX}
AS $settle$
DECLARE
  v ${schema}.expectation;
  v_stored record;
  v_type text;
  -- Whether the event is received: a found event, or the event of an overdue payment.
  v_receive boolean;
  v_before text;
  v_fulfil text;
BEGIN
  o_settled := false; o_result := p_result; o_detail := p_detail; o_state := 'waiting'; o_changed := false;
  SELECT * INTO v FROM ${schema}.expectation x WHERE x.seq = p_seq AND x.token = p_token AND x.leased;
  IF NOT FOUND THEN RETURN NEXT; RETURN; END IF;
  v_before := v.state;
  v_type := CASE WHEN p_result = 'event' THEN p_types[1] END;
  SELECT * INTO v_stored FROM ${schema}.stored_event(v.company, v.transaction_id, p_event_types, NULL);
  v_receive := CASE
    WHEN cardinality(p_companies) = 0 THEN false
    WHEN p_result <> 'event' THEN p_overdue AND v.state = 'waiting' AND v_stored.o_id IS NULL
    ELSE v_stored.o_id IS NULL OR EXISTS (
      SELECT FROM ${schema}.stored_event(v.company, v.transaction_id, ARRAY[v_type], NULL) s WHERE s.o_id IS NOT NULL)
    END;
  IF v_receive THEN
    BEGIN
      SELECT r.o_received_ms, r.o_seqs, r.o_runs, r.o_not_stored, r.o_fulfilled
        INTO o_received_ms, o_seqs, o_runs, o_not_stored, o_fulfilled
        FROM ${schema}.receive(${RECEIVE_NAMES}) r;
      IF o_not_stored -> 0 ->> 1 = 'outdated' THEN o_state := v_before; RETURN NEXT; RETURN; END IF;
      SELECT * INTO v FROM ${schema}.expectation x WHERE x.seq = p_seq AND x.token = p_token AND x.leased FOR UPDATE;
      IF NOT FOUND THEN RAISE EXCEPTION USING ERRCODE = 'PYUND'; END IF;
      IF p_result = 'event' THEN
        SELECT * INTO v_stored FROM ${schema}.stored_event(v.company, v.transaction_id, p_event_types, v_type);
        -- A new event of the type is stored now. A known one of the type may be next to one of another type.
        IF v_stored.o_id IS NOT NULL AND o_seqs[1] IS NOT NULL THEN RAISE EXCEPTION USING ERRCODE = 'PYUND'; END IF;
      ELSE
        SELECT * INTO v_stored FROM ${schema}.stored_event(v.company, v.transaction_id, p_event_types, NULL);
        IF v.state <> 'waiting' OR v_stored.o_id IS NOT NULL THEN RAISE EXCEPTION USING ERRCODE = 'PYUND'; END IF;
      END IF;
    EXCEPTION WHEN SQLSTATE 'PYUND' THEN
      o_received_ms := NULL; o_seqs := NULL; o_runs := NULL; o_not_stored := NULL; o_fulfilled := NULL;
      v_receive := false;
    END;
  END IF;

  SELECT * INTO v FROM ${schema}.expectation x WHERE x.seq = p_seq AND x.token = p_token AND x.leased FOR UPDATE;
  IF NOT FOUND THEN RETURN NEXT; RETURN; END IF;
  IF v_before IN ('waiting', 'overdue') AND v.state = 'fulfilled' AND o_fulfilled IS NOT NULL THEN o_changed := true; END IF;
  SELECT * INTO v_stored FROM ${schema}.stored_event(v.company, v.transaction_id, p_event_types, NULL);
  IF p_result = 'event' AND v_receive THEN
    v_fulfil := COALESCE(o_not_stored -> 0 ->> 2, p_ids[1]);
  ELSIF p_result = 'event' THEN
    o_result := 'contradiction';
    o_detail := left(replace(replace(p_contradiction, '{type}', v_stored.o_type), '{id}', v_stored.o_id), 1000);
    v_fulfil := v_stored.o_id;
  ELSIF p_overdue AND v.state = 'waiting' THEN
    v_fulfil := v_stored.o_id;
  END IF;
  IF v_fulfil IS NOT NULL AND v.state IN ('waiting', 'overdue') THEN
    UPDATE ${schema}.expectation x
       SET ${FULFILLED_BY}
      FROM ${schema}.event e WHERE x.seq = p_seq AND e.company = v.company AND e.id = v_fulfil;
    v.state := 'fulfilled';
    o_changed := true;
  END IF;
  IF p_overdue AND v.state = 'waiting' THEN
    v.state := 'overdue';
    o_changed := true;
  END IF;
  o_settled := true;
  o_state := v.state;
  o_next_ms := CASE v.state WHEN 'waiting' THEN p_next_ms::bigint END;
  UPDATE ${schema}.expectation x
     SET state = v.state, polls = x.polls + 1, last_poll_at = ${NOW_MS}, last_result = o_result, last_detail = o_detail,
         contradiction = CASE o_result WHEN 'contradiction' THEN o_detail ELSE x.contradiction END,
         lost_polls = CASE WHEN p_keep_lost THEN x.lost_polls ELSE 0 END, leased = false,
         next_poll_at = ${NOW_MS} + o_next_ms
   WHERE x.seq = p_seq;
  RETURN NEXT;
END $settle$;
`;

/** The function `expectation_counts` counts up to the cap, with one index for each count. */
const countsFunction = (schema: string): string => `
CREATE FUNCTION ${schema}.expectation_counts(OUT o_waiting bigint, OUT o_unpaid bigint,
  OUT o_unknown bigint)
LANGUAGE plpgsql STABLE ${BY_INDEX}
AS $counts$
BEGIN
  SELECT count(*) INTO o_waiting FROM (
    SELECT FROM ${schema}.expectation x WHERE x.state = 'waiting' LIMIT ${COUNT_CAP + 1}) c;
  SELECT count(*) INTO o_unpaid FROM (
    SELECT FROM ${schema}.expectation x WHERE x.state = 'overdue' AND x.last_result = 'pending' LIMIT ${COUNT_CAP + 1}) c;
  SELECT count(*) INTO o_unknown FROM (
    SELECT FROM ${schema}.expectation x WHERE x.state = 'overdue' AND x.last_result = 'unknown' LIMIT ${COUNT_CAP + 1}) c;
END $counts$;
`;

/** The functions of expectations. */
export const expectationFunctions = (schema: string): string =>
  expectFunctions(schema) + fulfilFunction(schema) + pollFunctions(schema) + countsFunction(schema);
