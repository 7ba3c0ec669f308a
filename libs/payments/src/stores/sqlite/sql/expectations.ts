import { boundedError, capped, COUNT_CAP } from '../../../inbox/store/stored-event.js';
import { contradictionDetail, POLL_HANDLER } from '../../../inbox/store/expectation-store.js';
import type {
  CappedCount,
  ExpectationCounts,
  ExpectationFilter,
  ExpectationName,
  ExpectationState,
  NewExpectation,
  PollLease,
  PollResult,
  PollSettlement,
  RequestState,
  SettledPoll,
} from '../../../inbox/store/inbox-store.js';
import type { SqliteConnection, Times } from '../thread/connection.js';
import { unpaused } from './catalog.js';
import { fulfilWith, OPEN, UNSCHEDULED } from './fulfil.js';
import { receive } from './receive.js';
import type { EventMessage, ReceiptMessage } from './receive.js';
import { COUNTS_ONCE, SOURCE } from './schema.js';
import { SLICE } from './search.js';
import type { Slice } from './search.js';
import { fromStored, toReadable, toStored } from './stored-rows.js';
import { prefixRange } from './text-search.js';

/** An expectation as the thread sends it. Times are numbers, and texts are as stored. */
export interface ExpectationRow {
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
  readonly polls: number;
  readonly lost_polls: number;
  readonly polled_at: number | null;
  readonly poll_result: PollResult | null;
  readonly poll_detail: string | null;
  readonly next_poll_at: number | null;
  readonly fulfilled_at: number | null;
  readonly fulfilled_source: number | null;
  readonly fulfilled_id: string | null;
  readonly fulfilled_type: string | null;
  readonly contradiction: string | null;
  readonly other_event_id: string | null;
}

/**
 * SQL: the store clock. The second parameter is the clock of this process, which in a transaction of the application may
 * be behind the clock of another process.
 */
const NOW = '(SELECT max(clock, ?2) FROM payments_inbox_meta)';

/**
 * Stores an expectation, in place of a cancelled one; returns `false` if it is known. The first statement writes: after a
 * read, a transaction of the application could not get the lock if another process wrote.
 */
export function expect(
  connection: SqliteConnection,
  expectation: NewExpectation,
  { wall, clock }: Times,
): boolean {
  const { company, reference, transactionId, dueInMs, schedule, firstPollInMs } = expectation;
  const values = [
    Math.round(firstPollInMs),
    clock,
    company,
    toStored(reference),
    transactionId && toStored(transactionId),
    wall,
    dueInMs,
    JSON.stringify(schedule),
  ];
  const inserted = connection.run(
    `INSERT INTO payments_inbox_expectation (created_clock, next_poll_at, company, reference, transaction_id, created_at,
       due_in_ms, schedule)
     VALUES (${NOW}, ${NOW} + ?1, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT DO NOTHING`,
    values,
  );
  if (inserted > 0) return true;
  const opened = connection.run(
    `UPDATE payments_inbox_expectation SET created_clock = ${NOW}, next_poll_at = ${NOW} + ?1, transaction_id = ?5,
       created_at = ?6, due_in_ms = ?7, schedule = ?8, state = 'waiting', leased = 0, token = token + 1, lost_polls = 0,
       polls = 0, polled_at = NULL, poll_result = NULL, poll_detail = NULL, contradiction = NULL, other_event_id = NULL,
       request = iif(request = 'running', request, NULL)
     WHERE reference = ?4 AND company = ?3 AND state = 'cancelled'`,
    values,
  );
  return opened > 0;
}

interface StateRow {
  readonly seq: number;
  readonly state: ExpectationState;
  readonly transaction_id: string | null;
  readonly fulfilled_transaction: string | null;
  readonly request: string | null;
  readonly request_until: number | null;
  readonly request_token: number;
}

function stateOf(
  connection: SqliteConnection,
  { company, reference }: ExpectationName,
): StateRow | undefined {
  return connection.get<StateRow>(
    `SELECT seq, state, transaction_id, fulfilled_transaction, request, request_until, request_token
     FROM payments_inbox_expectation
     WHERE reference = ? AND company = ?`,
    [toStored(reference), company],
  );
}

/** See `ExpectationStore.attach`. */
export function attach(
  connection: SqliteConnection,
  { transactionId, ...name }: ExpectationName & { readonly transactionId: string },
  { clock }: Times,
): 'attached' | 'conflict' | 'cancelled' | 'unknown' {
  const row = stateOf(connection, name);
  if (row === undefined) return 'unknown';
  if (row.state === 'cancelled') return 'cancelled';
  const id = toStored(transactionId);
  if (row.transaction_id !== null) return row.transaction_id === id ? 'attached' : 'conflict';
  const isOther = row.state === 'fulfilled' && row.fulfilled_transaction !== id;
  const pollNow = 'next_poll_at = iif(leased, next_poll_at, ?)';
  const waits = `state = 'waiting', other_event_id = fulfilled_id, fulfilled_at = NULL, fulfilled_source = NULL,
    fulfilled_id = NULL, fulfilled_type = NULL, fulfilled_transaction = NULL`;
  const set = isOther ? [waits, pollNow] : row.state === 'overdue' ? [pollNow] : [];
  connection.run(
    `UPDATE payments_inbox_expectation SET ${['transaction_id = ?', ...set].join(', ')} WHERE seq = ?`,
    set.length > 0 ? [id, clock, row.seq] : [id, row.seq],
  );
  return 'attached';
}

/** Cancels a waiting or overdue expectation; returns whether it did. */
export function cancel(
  connection: SqliteConnection,
  { company, reference }: ExpectationName,
): boolean {
  return (
    connection.run(
      `UPDATE payments_inbox_expectation SET state = 'cancelled', ${UNSCHEDULED}
       WHERE reference = ? AND company = ? AND ${OPEN}`,
      [toStored(reference), company],
    ) > 0
  );
}

/** See `ExpectationStore.startRequest`. */
export function startRequest(
  connection: SqliteConnection,
  { leaseMs, ...name }: ExpectationName & { readonly leaseMs: number },
  times: Times,
): { previous: RequestState; token: number | null; row: ExpectationRow } | undefined {
  const found = stateOf(connection, name);
  if (found === undefined) return undefined;
  const { seq, state, transaction_id, request, request_until, request_token } = found;
  const previous: RequestState =
    transaction_id !== null
      ? 'accepted'
      : request === 'running' && request_until! <= times.clock
        ? 'unknown'
        : ((request ?? 'never') as RequestState);
  const isOpen = state === 'waiting' || state === 'overdue';
  const granted = isOpen && previous !== 'running' && previous !== 'accepted';
  const token = granted ? request_token + 1 : null;
  if (token !== null) {
    connection.run(
      `UPDATE payments_inbox_expectation SET request = 'running', request_until = ?, request_token = ?
       WHERE seq = ?`,
      [times.clock + leaseMs, token, seq],
    );
  }
  return { previous, token, row: findExpectation(connection, name, times)! };
}

/** See `ExpectationStore.endRequest`. */
export function endRequest(
  connection: SqliteConnection,
  {
    company,
    reference,
    token,
    end,
  }: ExpectationName & {
    readonly token: number;
    readonly end: string;
  },
): boolean {
  const isCancelled = end === 'cancelled';
  const ended = connection.run(
    `UPDATE payments_inbox_expectation SET request = ?
     WHERE reference = ? AND company = ? AND request = 'running' AND request_token = ?`,
    [isCancelled || end === 'never' ? null : end, toStored(reference), company, token],
  );
  if (ended > 0 && isCancelled) {
    connection.run(
      `UPDATE payments_inbox_expectation SET state = 'cancelled', ${UNSCHEDULED}
       WHERE reference = ? AND company = ? AND state = 'waiting' AND transaction_id IS NULL`,
      [toStored(reference), company],
    );
  }
  return ended > 0;
}

/** See `ExpectationStore.claimPolls`. */
export function claimPolls(
  connection: SqliteConnection,
  { limit, leaseMs }: { readonly limit: number; readonly leaseMs: number },
  times: Times,
): ExpectationRow[] {
  if (unpaused(connection, [POLL_HANDLER]).length === 0) return [];
  const { clock } = times;
  const due = connection.all<{ readonly seq: number }>(
    `SELECT seq FROM payments_inbox_expectation INDEXED BY payments_inbox_expectation_poll
     WHERE next_poll_at <= ? ORDER BY next_poll_at LIMIT ?`,
    [clock, limit],
  );
  return due.map(({ seq }) => {
    connection.run(
      `UPDATE payments_inbox_expectation
       SET lost_polls = lost_polls + leased, leased = 1, token = token + 1, next_poll_at = ? WHERE seq = ?`,
      [clock + leaseMs, seq],
    );
    return connection.get<ExpectationRow>(`${SELECT} WHERE x.seq = ?`, [
      times.wall - clock,
      clock,
      seq,
    ])!;
  });
}

/** SQL: selects an expectation whose poll is leased under a token. */
const FENCE = 'seq = ? AND token = ? AND leased = 1';

/** See `ExpectationStore.releasePolls`. */
export function releasePolls(
  connection: SqliteConnection,
  request: { readonly leases: readonly PollLease[]; readonly dueInMs: readonly number[] },
  { clock }: Times,
): number {
  for (const [index, { seq, token }] of request.leases.entries()) {
    connection.run(
      `UPDATE payments_inbox_expectation SET leased = 0, next_poll_at = iif(state = 'cancelled', NULL, ?) WHERE ${FENCE}`,
      [clock + Math.round(request.dueInMs[index] ?? 0), seq, token],
    );
  }
  return request.leases.length;
}

/** A {@link PollSettlement} for the thread. */
export interface SettlementMessage extends Omit<PollSettlement, 'event'> {
  readonly event: EventMessage | null;
}

/** A {@link SettledPoll} of the thread. */
export interface SettledMessage extends Omit<SettledPoll, 'receipt'> {
  readonly receipt: ReceiptMessage | null;
}

/** See `ExpectationStore.settlePoll`. */
export function settlePoll(
  connection: SqliteConnection,
  { lease, outcome, event, eventTypes, keepLost }: SettlementMessage,
  times: Times,
): SettledMessage {
  const row = connection.get<StateRow & { readonly company: string }>(
    `SELECT seq, company, state, transaction_id FROM payments_inbox_expectation WHERE ${FENCE}`,
    [lease.seq, lease.token],
  );
  const detail = outcome.detail === null ? null : toReadable(boundedError(outcome.detail));
  const unchanged = { result: outcome.result, detail, changed: false, nextPollInMs: null };
  if (row === undefined) return { ...unchanged, settled: false, state: 'waiting', receipt: null };
  const { seq, company, state: before } = row;
  const isOpen = before === 'waiting' || before === 'overdue';
  const stored = storedEvents(connection, row, eventTypes);
  const isOverdue = outcome.next === 'overdue' && before === 'waiting';
  let recorded: Pick<SettledPoll, 'result' | 'detail'> = { result: outcome.result, detail };
  let receipt: ReceiptMessage | null = null;
  let fulfilledBy: string | null = null;
  if (outcome.result === 'event') {
    const isSame = stored.some(({ eventType }) => eventType === event!.eventType);
    const [rival] = isSame ? [] : stored;
    if (rival === undefined) {
      [receipt] = receive(connection, { events: [event!] }, times) as [ReceiptMessage];
      fulfilledBy = receipt.id;
    } else {
      const line = toReadable(boundedError(contradictionDetail(event!.eventType, rival)));
      recorded = { result: 'contradiction', detail: line };
      fulfilledBy = rival.id;
    }
  } else if (isOverdue && stored[0] !== undefined) fulfilledBy = stored[0].id;
  else if (isOverdue && event !== null) {
    [receipt] = receive(connection, { events: [event] }, times) as [ReceiptMessage];
  }
  if (receipt?.outcome === 'outdated') {
    return { ...unchanged, settled: false, state: before, receipt };
  }
  if (fulfilledBy !== null && isOpen) {
    const isDone = stateBySeq(connection, seq) === 'fulfilled';
    if (!isDone) fulfilWith(connection, seq, company, fulfilledBy, times);
  }
  const now = stateBySeq(connection, seq);
  const state = isOverdue && now === 'waiting' ? 'overdue' : now;
  const nextPollInMs =
    state === 'waiting' && typeof outcome.next === 'number' ? Math.round(outcome.next) : null;
  connection.run(
    `UPDATE payments_inbox_expectation
     SET polls = polls + 1, polled_at = ?, poll_result = ?, poll_detail = ?, contradiction = coalesce(?, contradiction),
       state = ?, lost_polls = iif(?, lost_polls, 0), leased = 0, next_poll_at = ?
     WHERE seq = ?`,
    [
      times.wall,
      recorded.result,
      recorded.detail,
      recorded.result === 'contradiction' ? recorded.detail : null,
      state,
      keepLost ? 1 : 0,
      nextPollInMs === null ? null : times.clock + nextPollInMs,
      seq,
    ],
  );
  return { settled: true, ...recorded, state, changed: state !== before, nextPollInMs, receipt };
}

function stateBySeq(connection: SqliteConnection, seq: number): ExpectationState {
  const select = 'SELECT state FROM payments_inbox_expectation WHERE seq = ?';
  return connection.get<{ state: ExpectationState }>(select, [seq])!.state;
}

/** The stored events of the expectation's transaction that are handled once per transaction, of these types. */
function storedEvents(
  connection: SqliteConnection,
  { company, transaction_id }: { readonly company: string; readonly transaction_id: string | null },
  eventTypes: readonly string[],
): { readonly id: string; readonly eventType: string }[] {
  if (transaction_id === null) return [];
  return eventTypes.flatMap((eventType) => {
    const found = connection.get<{ id: string }>(
      `SELECT id FROM payments_inbox_event
       WHERE ordering_key = ? AND event_type = ? AND company = ? AND ${COUNTS_ONCE}`,
      [transaction_id, toStored(eventType), company],
    );
    return found === undefined ? [] : [{ id: fromStored(found.id), eventType }];
  });
}

/** See `ExpectationStore.pollNow`. */
export function pollNow(
  connection: SqliteConnection,
  request: { readonly selections: readonly ExpectationName[]; readonly dueInMs: readonly number[] },
  { clock }: Times,
): number {
  return request.selections.reduce((changed, { company, reference }, index) => {
    const dueAt = clock + Math.round(request.dueInMs[index] ?? 0);
    return (
      changed +
      connection.run(
        `UPDATE payments_inbox_expectation
         SET next_poll_at = min(coalesce(next_poll_at, ?1), ?1), lost_polls = min(lost_polls, 2), leased = 0
         WHERE reference = ?2 AND company = ?3 AND state <> 'cancelled' AND NOT (leased = 1 AND next_poll_at > ?4)`,
        [dueAt, toStored(reference), company, clock],
      )
    );
  }, 0);
}

/** See `ExpectationStore.nextPollInMs`. */
export function nextPollInMs(
  connection: SqliteConnection,
  _request: null,
  { clock }: Times,
): number | null {
  if (unpaused(connection, [POLL_HANDLER]).length === 0) return null;
  const next = connection.get<{ readonly at: number }>(
    `SELECT next_poll_at AS at FROM payments_inbox_expectation INDEXED BY payments_inbox_expectation_poll
     WHERE next_poll_at IS NOT NULL ORDER BY next_poll_at LIMIT 1`,
  );
  return next === undefined ? null : next.at - clock;
}

/** Deletes expectations that ended before a time; returns how many. */
export function pruneExpectations(
  connection: SqliteConnection,
  before: number,
  limit: number,
): number {
  return connection.run(
    `DELETE FROM payments_inbox_expectation WHERE seq IN (
       SELECT seq FROM payments_inbox_expectation INDEXED BY payments_inbox_expectation_state
       WHERE state IN ('fulfilled', 'cancelled') AND created_at < ?1 AND coalesce(fulfilled_at, ?1 - 1) < ?1 LIMIT ?2)`,
    [before, limit],
  );
}

/** Counts open expectations. */
export function countExpectations(connection: SqliteConnection): ExpectationCounts {
  const countOf = (index: string, condition: string): CappedCount => {
    const { count } = connection.get<{ count: number }>(
      `SELECT count(*) AS count FROM (
         SELECT 1 FROM payments_inbox_expectation INDEXED BY payments_inbox_expectation_${index}
         WHERE ${condition} LIMIT ${COUNT_CAP + 1})`,
    )!;
    return capped(count);
  };
  return {
    waiting: countOf('state', "state = 'waiting'"),
    overdueUnpaid: countOf('overdue', "state = 'overdue' AND poll_result = 'pending'"),
    overdueUnknown: countOf('overdue', "state = 'overdue' AND poll_result = 'unknown'"),
  };
}

/** SQL: expectations. The first values are the wall clock minus the store clock, and the store clock. */
const SELECT = `SELECT x.seq, x.token, x.company, x.reference, x.transaction_id, x.state, x.created_at, x.due_in_ms,
    x.schedule, x.polls, x.lost_polls, x.polled_at, x.poll_result, x.poll_detail,
    iif(x.leased, NULL, x.next_poll_at + ?) AS next_poll_at, max(0, ? - x.created_clock) AS age_ms, x.fulfilled_at,
    x.fulfilled_source, x.fulfilled_id, x.fulfilled_type, x.contradiction, x.other_event_id
  FROM payments_inbox_expectation x`;

/** The expectation with that reference. */
export function findExpectation(
  connection: SqliteConnection,
  { company, reference }: ExpectationName,
  { wall, clock }: Times,
): ExpectationRow | undefined {
  const values = [wall - clock, clock, toStored(reference), company];
  return connection.get(`${SELECT} WHERE x.reference = ? AND x.company = ?`, values);
}

export interface ExpectationListRequest {
  readonly filter: ExpectationFilter;
  readonly limit: number;
  readonly after: Cursor | null;
}

/** A position in the list of expectations: time of creation and number. */
export interface Cursor {
  readonly createdAt: number;
  readonly seq: number;
}

/** The expectations that one slice found. */
export type ExpectationSlice = Slice<{ readonly row: ExpectationRow }, Cursor>;

/** A condition of a `WHERE`, and the values of its placeholders. */
type Condition = readonly [sql: string, ...values: unknown[]];

/** Reads the next {@link SLICE} expectations, newest first; returns those that match the filter, at most `limit`. */
export function listExpectations(
  connection: SqliteConnection,
  { filter, limit, after }: ExpectationListRequest,
  { wall, clock }: Times,
): ExpectationSlice {
  const { company, state, fulfilledBy, contradictory, from, to, search } = filter;
  const within: Condition[] = [sourceOf(connection, filter)];
  if (from !== undefined) within.push(['created_at >= ?', from.getTime()]);
  if (to !== undefined) within.push(['created_at < ?', to.getTime()]);
  if (after !== null) {
    within.push(['created_at <= ?', after.createdAt]);
    within.push(['(created_at, seq) < (?, ?)', after.createdAt, after.seq]);
  }
  const matching: Condition[] = [];
  if (company !== undefined) matching.push(['x.company = ?', company]);
  // The plus keeps the planner from reading all expectations in that state.
  if (state !== undefined) matching.push(['+x.state = ?', state]);
  if (fulfilledBy !== undefined) matching.push(['x.fulfilled_source = ?', SOURCE[fulfilledBy]]);
  if (contradictory === true) matching.push(['x.contradiction IS NOT NULL']);
  if (search !== undefined) {
    const range = prefixRange(search);
    const begins = (column: string) => `(x.${column} >= ? AND x.${column} < ?)`;
    const either = `(${begins('reference')} OR ${begins('transaction_id')})`;
    matching.push([either, ...range, ...range]);
  }
  // Without conditions, every expectation matches.
  const size = matching.length === 0 ? Math.min(SLICE, limit) : SLICE;
  const slice = `FROM payments_inbox_expectation ${sqlOf(within)} ORDER BY created_at DESC, seq DESC`;
  const last = connection.get<Cursor>(
    `SELECT created_at AS createdAt, seq AS seq ${slice} LIMIT 1 OFFSET ?`,
    [...valuesOf(within), size - 1],
  );
  const rows = connection.all<ExpectationRow>(
    `${SELECT} WHERE ${sqlOf([[`x.seq IN (SELECT seq ${slice} LIMIT ?)`], ...matching])}
     ORDER BY x.created_at DESC, x.seq DESC LIMIT ?`,
    [wall - clock, clock, ...valuesOf(within), size, ...valuesOf(matching), limit],
  );
  return {
    found: rows.map((row) => ({ at: { createdAt: row.created_at, seq: row.seq }, row })),
    next: last ? { createdAt: last.createdAt, seq: last.seq } : null,
  };
}

function sqlOf(conditions: readonly Condition[]): string {
  return conditions.map(([sql]) => sql).join(' AND ');
}

function valuesOf(conditions: readonly Condition[]): unknown[] {
  return conditions.flatMap(([, ...values]) => values);
}

/** The smallest set that contains all expectations that can match, in order of creation. */
function sourceOf(connection: SqliteConnection, filter: ExpectationFilter): Condition {
  const { transactionId, state, fulfilledBy, contradictory, search } = filter;
  const by = (index: string) => `INDEXED BY payments_inbox_expectation_${index} WHERE`;
  if (transactionId !== undefined)
    return [`${by('transaction')} transaction_id = ?`, toStored(transactionId)];
  const few = search === undefined ? null : fewBeginningWith(connection, search);
  if (few !== null) return ['WHERE seq IN (SELECT value FROM json_each(?))', few];
  if (contradictory === true) return [`${by('contradiction')} contradiction IS NOT NULL`];
  if (fulfilledBy === 'poll') return [`${by('polled')} fulfilled_source = ${SOURCE.poll}`];
  if (state !== undefined) return [`${by('state')} state = ?`, state];
  return [`${by('created')} 1`];
}

/** The expectations whose reference or transaction id begins with a text, as JSON; `null` if there are many. */
function fewBeginningWith(connection: SqliteConnection, text: string): string | null {
  const rows = ['reference', 'transaction'].flatMap((index) => {
    const column = index === 'reference' ? index : 'transaction_id';
    return connection.all<{ seq: number }>(
      `SELECT seq FROM payments_inbox_expectation INDEXED BY payments_inbox_expectation_${index}
       WHERE ${column} >= ? AND ${column} < ? LIMIT ${SLICE}`,
      prefixRange(text),
    );
  });
  return rows.length < SLICE ? JSON.stringify(rows.map((row) => row.seq)) : null;
}
