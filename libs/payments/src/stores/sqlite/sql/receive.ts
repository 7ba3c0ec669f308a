import { hash } from 'node:crypto';
import { TEST_EVENT_TYPE } from '../../../events/payment-event.js';
import type { IncomingEvent, StoreReceipt } from '../../../inbox/store/inbox-store.js';
import type { SqliteConnection, Times } from '../thread/connection.js';
import type { Receipt } from '../thread/sent-values.js';
import type { SqliteSql } from '../thread/sqlite-sql.js';
import { catalogVersion, unpaused } from './catalog.js';
import { ANY_DUE, beganToWait, isOrderingBusy } from './ordering.js';
import { fulfil } from './fulfil.js';
import { COUNTS_ONCE } from './schema.js';
import { fromStored, orderingOf, toStored } from '../../sql/sql-connection.js';
import { isLive } from './workers.js';

/** How many other events of the same payment transaction are stored with the first event. */
const MAX_REPEATS = 20;

/** Stores new events, each with its deliveries, and reports the events that are known already. */
export function receive(sql: SqliteSql, events: readonly IncomingEvent[]): Receipt[] {
  const { connection, times } = sql;
  return events.map((event) => {
    const digest = hash('sha256', event.raw, 'buffer');
    const isCurrent = event.catalogVersion === catalogVersion(connection);
    // Nearly all events are new, so an event is looked up only after its insert failed on a unique index.
    const seq = isCurrent ? insertEvent(connection, event, digest, times) : null;
    if (seq === null) {
      const known = findKnown(connection, event, digest, times);
      const fulfils = event.fulfils && known?.outcome === 'duplicate';
      const fulfilled = fulfils ? fulfil(connection, event, known.id, times) : [];
      const { id, outcome } = known ?? { id: event.id, outcome: 'outdated' };
      return { outcome, id, claimed: [], pending: false, fulfilled };
    }
    insertBody(connection, event, seq);
    const claimed = insertDeliveries(connection, event, seq, times);
    const pending = claimed.length < event.handlers.length;
    sql.wakes ||= pending;
    const fulfilled = event.fulfils ? fulfil(connection, event, event.id, times) : [];
    return { outcome: 'stored', id: event.id, claimed, pending, fulfilled };
  });
}

/**
 * The receipt of an event that is stored already, or whose payment transaction has another event already; `undefined`
 * for a new event.
 */
function findKnown(
  connection: SqliteConnection,
  event: IncomingEvent,
  digest: Buffer,
  times: Times,
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
     WHERE ordering_key = ? AND event_type = ? AND company = ? AND ${COUNTS_ONCE}`,
    [toStored(event.orderingKey!), toStored(event.eventType), event.company],
  );
  if (first === undefined) return undefined;
  addRepeat(connection, first, event.id, times);
  return { id: fromStored(first.id), outcome: 'duplicate' };
}

function addRepeat(
  connection: SqliteConnection,
  first: { readonly seq: number; readonly repeats: string | null },
  id: string,
  { wall }: Times,
): void {
  const repeats = JSON.parse(first.repeats ?? '[]') as [id: string, receivedMs: number][];
  const added = toStored(id);
  if (repeats.some(([known]) => known === added)) return;
  connection.run('UPDATE payments_inbox_event SET repeats = ? WHERE seq = ?', [
    JSON.stringify([...repeats, [added, wall]].slice(-MAX_REPEATS)),
    first.seq,
  ]);
}

/** Whether the event is handled once per transaction, and has one. */
function isOnce({ oncePerTransaction, orderingKey }: IncomingEvent): boolean {
  return oncePerTransaction && orderingKey !== null;
}

/** Returns the number of the new event; `null` if the event is known. */
function insertEvent(
  connection: SqliteConnection,
  event: IncomingEvent,
  digest: Uint8Array,
  { wall }: Times,
): number | null {
  const { company, id, eventType, occurredAt, orderingKey, stale, handlers, source, summary } =
    event;
  const isUnhandled = handlers.length === 0 && eventType !== TEST_EVENT_TYPE;
  return connection.insert(
    `INSERT INTO payments_inbox_event (company, id, event_type, occurred_at, received_at, ordering_key, once,
       digest, stale, unhandled, source, reference, amount, currency)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT DO NOTHING`,
    [
      company,
      toStored(id),
      toStored(eventType),
      occurredAt.getTime(),
      wall,
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
}

function insertBody(
  connection: SqliteConnection,
  { raw, headers }: IncomingEvent,
  seq: number,
): void {
  connection.run(
    // `node:sqlite` binds an empty body as NULL.
    "INSERT INTO payments_inbox_body (event, raw, headers) VALUES (?, coalesce(?, x''), ?)",
    [seq, raw, toStored(JSON.stringify(headers))],
  );
}

/** Adds the deliveries of a new event; returns those that run at once, in their first attempt. */
function insertDeliveries(
  connection: SqliteConnection,
  { company, id, source, orderingKey, handlers, assign }: IncomingEvent,
  seq: number,
  { wall, clock }: Times,
): Receipt['claimed'] {
  const first = { company, id, seq, token: 1, attempt: 1, crashes: 0, ageMs: 0, source };
  const ordering = orderingOf(company, orderingKey && toStored(orderingKey));
  const assignable = assignableHandlers(connection, assign);
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

function assignableHandlers(
  connection: SqliteConnection,
  assign: IncomingEvent['assign'],
): readonly string[] {
  if (assign === null || !isLive(connection, assign.workerId)) return [];
  return unpaused(connection, assign.handlers);
}
