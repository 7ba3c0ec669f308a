import { hash } from 'node:crypto';
import { TEST_EVENT_TYPE } from '../../../events/payment-event.js';
import type {
  EventSource,
  ExpectationState,
  FulfilledExpectation,
  IncomingEvent,
  StoreReceipt,
} from '../../../inbox/store/inbox-store.js';
import { isOpen } from '../../../inbox/store/expectation-store.js';
import { MAX_REPEATS } from '../../../inbox/store/stored-event.js';
import { OPEN, UNSCHEDULED } from '../../sql/expectations.js';
import type { SqliteSql } from '../thread/connection.js';
import { ANY_DUE, beganToWait, isOrderingBusy } from './ordering.js';
import { countsOnce, fromStored, orderingOf, toStored } from '../../sql/sql-connection.js';
import { catalogVersion, isLive, unpaused } from './workers.js';

export function receive(sql: SqliteSql, events: readonly IncomingEvent[]): StoreReceipt[] {
  return events.map((event) => {
    const digest = hash('sha256', event.raw, 'buffer');
    const isCurrent = event.catalogVersion === catalogVersion(sql.connection);
    // Nearly all events are new, so an event is looked up only after its insert failed on a unique index.
    const seq = isCurrent ? insertEvent(sql, event, digest) : null;
    if (seq === null) {
      const known = findKnown(sql, event, digest);
      const fulfils = event.fulfils && known?.outcome === 'duplicate';
      const fulfilled = fulfils ? fulfil(sql, event, known.id) : [];
      const { id, outcome } = known ?? { id: event.id, outcome: 'outdated' };
      return { outcome, id, claimed: [], pending: false, fulfilled };
    }
    const claimed = insertDeliveries(sql, event, seq);
    const pending = claimed.length < event.handlers.length;
    sql.wakes ||= pending;
    const fulfilled = event.fulfils ? fulfil(sql, event, event.id) : [];
    return { outcome: 'stored', id: event.id, claimed, pending, fulfilled };
  });
}

/** Returns the receipt of an event that is stored, or whose transaction has another event; otherwise `undefined`. */
function findKnown(
  { connection, times }: SqliteSql,
  event: IncomingEvent,
  digest: Buffer,
): Pick<StoreReceipt, 'id' | 'outcome'> | undefined {
  const same = connection.get<{ digest: Uint8Array }>(
    'SELECT digest FROM payments_inbox_event WHERE id = ? AND company = ?',
    [toStored(event.id), event.company],
  );
  if (same !== undefined) {
    return { id: event.id, outcome: digest.equals(same.digest) ? 'duplicate' : 'conflict' };
  }
  if (!isOnce(event) || event.stale) return undefined;
  const first = connection.get<{ seq: number; id: string; repeats: string | null }>(
    `SELECT seq, id, repeats FROM payments_inbox_event
     WHERE ordering_key = ? AND event_type = ? AND company = ? AND ${countsOnce('')}`,
    [toStored(event.orderingKey!), toStored(event.eventType), event.company],
  );
  if (first === undefined) return undefined;
  const repeats = JSON.parse(first.repeats ?? '[]') as [id: string, receivedMs: number][];
  const added = toStored(event.id);
  if (!repeats.some(([known]) => known === added)) {
    connection.run('UPDATE payments_inbox_event SET repeats = ? WHERE seq = ?', [
      JSON.stringify([...repeats, [added, times.wall]].slice(-MAX_REPEATS)),
      first.seq,
    ]);
  }
  return { id: fromStored(first.id), outcome: 'duplicate' };
}

function isOnce({ oncePerTransaction, orderingKey }: IncomingEvent): boolean {
  return oncePerTransaction && orderingKey !== null;
}

/** Stores the event and its body. Returns the number of the new event; `null` if the event is already stored. */
function insertEvent(
  { connection, times }: SqliteSql,
  event: IncomingEvent,
  digest: Uint8Array,
): number | null {
  const { company, id, eventType, occurredAt, orderingKey, stale, handlers, source, summary } =
    event;
  const isUnhandled = handlers.length === 0 && eventType !== TEST_EVENT_TYPE;
  const seq = connection.insert(
    `INSERT INTO payments_inbox_event (company, id, event_type, occurred_at, received_at, ordering_key, once,
       digest, stale, unhandled, source, reference, amount, currency)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT DO NOTHING`,
    [
      company,
      toStored(id),
      toStored(eventType),
      occurredAt.getTime(),
      times.wall,
      orderingKey === null ? null : toStored(orderingKey),
      isOnce(event) ? 1 : 0,
      digest,
      stale ? 1 : 0,
      isUnhandled ? 1 : 0,
      source,
      summary?.reference == null ? null : toStored(summary.reference),
      summary?.amount ?? null,
      summary?.currency ?? null,
    ],
  );
  if (seq === null) return null;
  connection.run(
    // `node:sqlite` binds an empty body as NULL.
    "INSERT INTO payments_inbox_body (event, raw, headers) VALUES (?, coalesce(?, x''), ?)",
    [seq, event.raw, toStored(JSON.stringify(event.headers))],
  );
  return seq;
}

/** Adds the deliveries of a new event. Returns the deliveries that run immediately, in their first attempt. */
function insertDeliveries(
  { connection, times }: SqliteSql,
  { company, id, source, orderingKey, handlers, assign }: IncomingEvent,
  seq: number,
): StoreReceipt['claimed'] {
  const { wall, clock } = times;
  const first = { company, id, seq, token: 1, attempt: 1, crashes: 0, ageMs: 0, source };
  const ordering = orderingOf(company, orderingKey && toStored(orderingKey));
  const isAssignable = assign !== null && isLive(connection, assign.workerId);
  const assignable = isAssignable ? unpaused(connection, assign.handlers) : [];
  return handlers.flatMap((handler) => {
    if (assignable.includes(handler)) {
      // Inserts nothing if another delivery of the key runs, which the index of running deliveries detects, or is due.
      const inserted = connection.run(
        `INSERT INTO payments_inbox_delivery
           (event, handler, state, attempts, token, worker, started_at, ordering)
         SELECT ?4, ?1, 'running', 1, 1, ?5, ?6, ?2 WHERE NOT (${ANY_DUE}) ON CONFLICT DO NOTHING`,
        [handler, ordering, clock, seq, assign!.workerId, wall],
      );
      if (inserted > 0) return [{ ...first, handler, receivedAt: new Date(wall) }];
    }
    // A delivery whose key is busy waits from the start, so that no claim has to make it wait.
    const busy = isOrderingBusy(connection, handler, ordering, clock);
    connection.run(
      `INSERT INTO payments_inbox_delivery (event, handler, state, queue, due_at, ordering)
       VALUES (?, ?, 'pending', ?, ?, ?)`,
      [seq, handler, busy ? 'waiting' : 'due', clock, ordering],
    );
    if (busy) beganToWait(connection, handler);
    return [];
  });
}

interface OpenRow {
  readonly seq: number;
  readonly reference: string;
  readonly state: ExpectationState;
  readonly transaction_id: string | null;
  readonly fulfilled_transaction: string | null;
}

/** Fulfils the open expectations that match the transaction or the reference, with the stored event `storedId`. */
export function fulfil(
  sql: SqliteSql,
  { company, orderingKey, reference }: Pick<IncomingEvent, 'company' | 'orderingKey' | 'reference'>,
  storedId: string,
): FulfilledExpectation[] {
  if (orderingKey === null && reference === null) return [];
  const key = orderingKey && toStored(orderingKey);
  const columns = 'seq, reference, state, transaction_id, fulfilled_transaction';
  const rows = sql.connection.all<OpenRow>(
    `SELECT ${columns} FROM payments_inbox_expectation INDEXED BY payments_inbox_expectation_transaction
     WHERE transaction_id = ?1 AND company = ?3 AND ${OPEN}
     UNION SELECT ${columns} FROM payments_inbox_expectation INDEXED BY payments_inbox_expectation_reference
     WHERE reference = ?2 AND company = ?3 AND state <> 'cancelled'`,
    [key, reference && toStored(reference), company],
  );
  return rows.flatMap((row) => {
    if (isOpen(row.state) && (row.transaction_id === null || row.transaction_id === key)) {
      const by = fulfilWith(sql, row.seq, company, storedId);
      const transactionId = row.transaction_id && fromStored(row.transaction_id);
      return [{ reference: fromStored(row.reference), transactionId, by }];
    }
    const own = row.transaction_id ?? row.fulfilled_transaction;
    if (own !== null && own !== key) {
      const update = 'UPDATE payments_inbox_expectation SET other_event_id = ? WHERE seq = ?';
      sql.connection.run(update, [toStored(storedId), row.seq]);
    }
    return [];
  });
}

/** Fulfils an expectation with a stored event, if the expectation is open. Returns the source of the event. */
export function fulfilWith(
  { connection, times }: SqliteSql,
  seq: number,
  company: string,
  storedId: string,
): EventSource {
  const id = toStored(storedId);
  const { source, event_type, ordering_key } = connection.get<{
    readonly source: EventSource;
    readonly event_type: string;
    readonly ordering_key: string | null;
  }>(
    'SELECT source, event_type, ordering_key FROM payments_inbox_event WHERE id = ? AND company = ?',
    [id, company],
  )!;
  connection.run(
    `UPDATE payments_inbox_expectation
     SET state = 'fulfilled', fulfilled_at = ?, fulfilled_by = ?, fulfilled_id = ?, fulfilled_type = ?,
       fulfilled_transaction = ?, ${UNSCHEDULED}
     WHERE seq = ? AND ${OPEN}`,
    [times.wall, source, id, event_type, ordering_key, seq],
  );
  return source;
}
