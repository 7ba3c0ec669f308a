import { hash } from 'node:crypto';
import {
  EXPECTATION_EVENT_TYPE,
  expectationEventId,
  POLL_HANDLER,
} from '../../store/expectation-store.js';
import type { ExpectationFilter, IncomingEvent, NewExpectation } from '../../store/inbox-store.js';
import type { SqliteConnection, Times } from '../thread/connection.js';
import { SOURCE } from './schema.js';
import { SLICE } from './search.js';
import type { Cursor, Slice } from './search.js';
import { toStored } from './stored-rows.js';
import type { ExpectationRow } from './stored-rows.js';
import { prefixRange } from './text-search.js';

export type ExpectationName = Pick<NewExpectation, 'company' | 'reference'>;
const BODY = Buffer.from('{}');
const DIGEST = hash('sha256', BODY, 'buffer');

/**
 * SQL: the store clock. The second parameter is the clock of this process, which in a transaction of the application may
 * be behind the clock of another process.
 */
const NOW = '(SELECT max(clock, ?2) FROM payments_inbox_meta)';

/** SQL: the expectations that an event can still fulfil. */
const OPEN = "state IN ('waiting', 'overdue')";

/**
 * Stores an expectation, with its event and the delivery that polls; returns `false` if it is known. The first
 * statement writes: after a read, a transaction of the application could not get the lock if another process wrote.
 */
export function expect(
  connection: SqliteConnection,
  expectation: NewExpectation,
  { wall, clock }: Times,
): boolean {
  const { company, reference, transactionId, dueBy, schedule, firstPollInMs } = expectation;
  const seq = connection.insert(
    `INSERT INTO payments_inbox_event (company, id, event_type, occurred_at, received_at, digest, stale, undelivered,
       source)
     VALUES (?1, ?2, '${EXPECTATION_EVENT_TYPE}', ?3, ?3, ?4, 0, 0, ${SOURCE.expectation}) ON CONFLICT DO NOTHING`,
    [company, toStored(expectationEventId(reference)), wall, DIGEST],
  );
  if (seq === null) return false;
  const insertBody =
    "INSERT INTO payments_inbox_body (event_seq, raw, headers) VALUES (?, ?, '{}')";
  connection.run(insertBody, [seq, BODY]);
  connection.run(
    `INSERT INTO payments_inbox_delivery (event_seq, handler, state, queue, due_at, occurred_at, received_at)
     VALUES (?1, '${POLL_HANDLER}', 'pending', 'due', ${NOW} + ?3, ?4, ?4)`,
    [seq, clock, Math.round(firstPollInMs), wall],
  );
  connection.run(
    `INSERT INTO payments_inbox_expectation (event_seq, created_clock, company, reference, transaction_id, created_at,
       due_by, schedule)
     VALUES (?1, ${NOW}, ?3, ?4, ?5, ?6, ?7, ?8)`,
    [
      seq,
      clock,
      company,
      toStored(reference),
      transactionId && toStored(transactionId),
      wall,
      dueBy && dueBy.getTime(),
      JSON.stringify(schedule),
    ],
  );
  return true;
}

/** Sets the transaction id of an expectation that has none. The first statement writes, as in {@link expect}. */
export function attach(
  connection: SqliteConnection,
  { company, reference, transactionId }: ExpectationName & { readonly transactionId: string },
): 'attached' | 'conflict' | 'unknown' {
  const id = toStored(transactionId);
  const name = [toStored(reference), company];
  const changed = connection.run(
    `UPDATE payments_inbox_expectation SET transaction_id = coalesce(transaction_id, ?)
     WHERE reference = ? AND company = ?`,
    [id, ...name],
  );
  if (changed === 0) return 'unknown';
  const row = connection.get<{ transaction_id: string }>(
    'SELECT transaction_id FROM payments_inbox_expectation WHERE reference = ? AND company = ?',
    name,
  );
  return row!.transaction_id === id ? 'attached' : 'conflict';
}

/** Cancels a waiting or overdue expectation; returns whether it did. */
export function cancel(
  connection: SqliteConnection,
  { company, reference }: ExpectationName,
  { wall }: Times,
): boolean {
  const row = connection.get<{ event_seq: number }>(
    `SELECT event_seq FROM payments_inbox_expectation WHERE reference = ? AND company = ? AND ${OPEN}`,
    [toStored(reference), company],
  );
  if (row === undefined) return false;
  const cancelRow = "UPDATE payments_inbox_expectation SET state = 'cancelled' WHERE event_seq = ?";
  connection.run(cancelRow, [row.event_seq]);
  endPoll(connection, row.event_seq, wall);
  return true;
}

/** Fulfils the open expectations of an event's transaction and reference with the stored event of the id `storedId`. */
export function fulfil(
  connection: SqliteConnection,
  { company, orderingKey, reference }: Pick<IncomingEvent, 'company' | 'orderingKey' | 'reference'>,
  storedId: string,
  { wall }: Times,
): void {
  if (orderingKey === null && reference === null) return;
  const rows = connection.all<{ event_seq: number }>(
    `SELECT event_seq FROM payments_inbox_expectation INDEXED BY payments_inbox_expectation_transaction
     WHERE transaction_id = ?1 AND company = ?3 AND ${OPEN}
     UNION SELECT event_seq FROM payments_inbox_expectation INDEXED BY payments_inbox_expectation_reference
     WHERE reference = ?2 AND company = ?3 AND ${OPEN}`,
    [orderingKey && toStored(orderingKey), reference && toStored(reference), company],
  );
  for (const { event_seq } of rows) {
    connection.run(
      `UPDATE payments_inbox_expectation
       SET state = 'fulfilled', fulfilled_at = ?, (fulfilled_source, fulfilled_id, fulfilled_type) =
         (SELECT source, id, event_type FROM payments_inbox_event WHERE id = ? AND company = ?)
       WHERE event_seq = ?`,
      [wall, toStored(storedId), company, event_seq],
    );
    endPoll(connection, event_seq, wall);
  }
}

/** Makes a pending poll done. Nothing waits for it, because polls have no ordering key. */
function endPoll(connection: SqliteConnection, seq: number, wall: number): void {
  connection.run(
    `UPDATE payments_inbox_delivery SET state = 'done', queue = NULL, crashes = 0, due_at = NULL, finished_at = ?
     WHERE event_seq = ? AND handler = '${POLL_HANDLER}' AND state = 'pending'`,
    [wall, seq],
  );
}

/** SQL: expectations with their next polls. The first values are the wall clock minus the store clock, and the store clock. */
const SELECT = `SELECT x.event_seq AS seq, x.company, x.reference, x.transaction_id, x.state, x.created_at, x.due_by,
    x.schedule, x.polls, x.polled_at, x.poll_result, x.poll_detail, d.due_at + ? AS next_poll_at,
    max(0, ? - x.created_clock) AS age_ms, x.fulfilled_at, x.fulfilled_source, x.fulfilled_id, x.fulfilled_type, x.contradiction
  FROM payments_inbox_expectation x
    LEFT JOIN payments_inbox_delivery d ON d.event_seq = x.event_seq AND d.handler = '${POLL_HANDLER}'`;

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
/** The expectations that one slice found, each with its position: time of creation and number. */
export type ExpectationSlice = Slice<{ readonly at: Cursor; readonly row: ExpectationRow }>;

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
    within.push(['created_at <= ?', after.receivedAt]);
    within.push(['(created_at, event_seq) < (?, ?)', after.receivedAt, after.seq]);
  }
  const matching: Condition[] = [];
  if (company !== undefined) matching.push(['x.company = ?', company]);
  if (state !== undefined) matching.push(['x.state = ?', state]);
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
  const slice = `FROM payments_inbox_expectation ${sqlOf(within)} ORDER BY created_at DESC, event_seq DESC`;
  const last = connection.get<Cursor>(
    `SELECT created_at AS receivedAt, event_seq AS seq ${slice} LIMIT 1 OFFSET ?`,
    [...valuesOf(within), size - 1],
  );
  const rows = connection.all<ExpectationRow>(
    `${SELECT} WHERE ${sqlOf([[`x.event_seq IN (SELECT event_seq ${slice} LIMIT ?)`], ...matching])}
     ORDER BY x.created_at DESC, x.event_seq DESC LIMIT ?`,
    [wall - clock, clock, ...valuesOf(within), size, ...valuesOf(matching), limit],
  );
  return {
    found: rows.map((row) => ({ at: { receivedAt: row.created_at, seq: row.seq }, row })),
    next: last ? { receivedAt: last.receivedAt, seq: last.seq } : null,
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
  if (few !== null) return ['WHERE event_seq IN (SELECT value FROM json_each(?))', few];
  if (contradictory === true) return [`${by('contradiction')} contradiction IS NOT NULL`];
  if (fulfilledBy === 'poll') return [`${by('polled')} fulfilled_source = ${SOURCE.poll}`];
  if (state !== undefined) return [`${by('state')} state = ?`, state];
  return [`${by('created')} 1`];
}

/** The expectations whose reference or transaction id begins with a text, as JSON; `null` if there are many. */
function fewBeginningWith(connection: SqliteConnection, text: string): string | null {
  const rows = ['reference', 'transaction'].flatMap((index) => {
    const column = index === 'reference' ? index : 'transaction_id';
    return connection.all<{ event_seq: number }>(
      `SELECT event_seq FROM payments_inbox_expectation INDEXED BY payments_inbox_expectation_${index}
       WHERE ${column} >= ? AND ${column} < ? LIMIT ${SLICE}`,
      prefixRange(text),
    );
  });
  return rows.length < SLICE ? JSON.stringify(rows.map((row) => row.event_seq)) : null;
}
