import { hash } from 'node:crypto';
import { TEST_EVENT_TYPE } from '../../../events/payment-event.js';
import type { IncomingEvent, StoreReceipt } from '../../../inbox/store/inbox-store.js';
import type { SqliteConnection, Times } from '../thread/connection.js';
import { catalogVersion, unpaused } from './catalog.js';
import { ANY_DUE, beganToWait, isOrderingBusy } from './ordering.js';
import { fulfil } from './fulfil.js';
import { COUNTS_ONCE, SOURCE, UNDELIVERED } from './schema.js';
import { fromStored, orderingOf, toStored } from './stored-rows.js';
import { isLive } from './workers.js';

/** How many other events of the same payment transaction are stored with the first event. */
const MAX_REPEATS = 20;

/** An {@link IncomingEvent} as the store sends it to the thread, where a `Buffer` arrives as a `Uint8Array`. */
export interface EventMessage extends Omit<IncomingEvent, 'raw' | 'occurredAt' | 'headers'> {
  readonly occurredAt: number;
  readonly raw: Uint8Array;
  /** The JSON object that is stored. */
  readonly headers: string;
}

/** A {@link StoreReceipt} as the thread sends it, without the fields of the event, which the store has. */
export interface ReceiptMessage extends Omit<StoreReceipt, 'claimed'> {
  /** The number of the new event; 0 if no event was stored. */
  readonly seq: number;
  readonly receivedAt: number;
  /** The handlers of the deliveries that run at once. */
  readonly claimed: readonly string[];
}

/** Converts an event for the thread. */
export function toEventMessage(event: IncomingEvent): EventMessage {
  return {
    company: event.company,
    id: event.id,
    eventType: event.eventType,
    occurredAt: event.occurredAt.getTime(),
    orderingKey: event.orderingKey,
    // A copy of the body only: `postMessage` would copy the whole memory pool of a pooled buffer.
    raw: new Uint8Array(event.raw),
    headers: JSON.stringify(event.headers),
    oncePerTransaction: event.oncePerTransaction,
    handlers: event.handlers,
    catalogVersion: event.catalogVersion,
    assign: event.assign,
    stale: event.stale,
    source: event.source,
    reference: event.reference,
    summary: event.summary,
    fulfils: event.fulfils,
  };
}

/** Converts receipts of the thread. A new delivery is at its first attempt; its other fields are in the event. */
export function toReceipts(
  receipts: readonly ReceiptMessage[],
  events: readonly IncomingEvent[],
): StoreReceipt[] {
  return Array.from(receipts, (received, index) => {
    const { outcome, id, pending, seq, receivedAt, claimed, fulfilled } = received;
    const { company, source, raw } = events[index]!;
    const first = { company, id, seq, token: 1, attempt: 1, crashes: 0, ageMs: 0, source, raw };
    return {
      outcome,
      id,
      pending,
      fulfilled: Array.from(fulfilled, (one) => ({ ...one })),
      claimed: Array.from(claimed, (handler) => ({
        ...first,
        handler,
        receivedAt: new Date(receivedAt),
      })),
    };
  });
}

/** Stores new events, each with its deliveries, and reports the events that are known already. */
export function receive(
  connection: SqliteConnection,
  { events }: { readonly events: readonly EventMessage[] },
  times: Times,
): ReceiptMessage[] {
  return events.map((event) => {
    const digest = hash('sha256', event.raw, 'buffer');
    const isCurrent = event.catalogVersion === catalogVersion(connection);
    // Nearly all events are new, so an event is looked up only after its insert failed on a unique index.
    const seq = isCurrent ? insertEvent(connection, event, digest, times) : null;
    const receipt = { id: event.id, seq: seq ?? 0, receivedAt: times.wall };
    if (seq === null) {
      const known = findKnown(connection, event, digest, times);
      const fulfils = event.fulfils && known?.outcome === 'duplicate';
      const fulfilled = fulfils ? fulfil(connection, event, known.id, times) : [];
      const stored = known ?? { outcome: 'outdated' as const };
      return { ...receipt, claimed: [], pending: false, fulfilled, ...stored };
    }
    insertBody(connection, event, seq);
    const claimed = insertDeliveries(connection, event, seq, times);
    const pending = claimed.length < event.handlers.length;
    const fulfilled = event.fulfils ? fulfil(connection, event, event.id, times) : [];
    return { ...receipt, claimed, pending, fulfilled, outcome: 'stored' };
  });
}

/**
 * The receipt of an event that is stored already, or whose payment transaction has another event already; `undefined`
 * for a new event.
 */
function findKnown(
  connection: SqliteConnection,
  event: EventMessage,
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
  const first = connection.get<{ seq: number; id: string }>(
    `SELECT seq, id FROM payments_inbox_event
     WHERE ordering_key = ? AND event_type = ? AND company = ? AND ${COUNTS_ONCE}`,
    [toStored(event.orderingKey!), toStored(event.eventType), event.company],
  );
  if (first === undefined) return undefined;
  addRepeat(connection, first.seq, event.id, times);
  return { id: fromStored(first.id), outcome: 'duplicate' };
}

function addRepeat(connection: SqliteConnection, seq: number, id: string, { wall }: Times): void {
  const added = connection.run(
    'INSERT OR IGNORE INTO payments_inbox_repeat (event_seq, id, received_at) VALUES (?, ?, ?)',
    [seq, toStored(id), wall],
  );
  if (added === 0) return;
  connection.run(
    `DELETE FROM payments_inbox_repeat WHERE event_seq = ?1 AND id IN (
       SELECT id FROM payments_inbox_repeat WHERE event_seq = ?1 AND id <> ?2
       ORDER BY received_at DESC, id DESC LIMIT -1 OFFSET ${MAX_REPEATS - 1})`,
    [seq, toStored(id)],
  );
}

/** Whether the event is handled once per transaction, and has one. */
function isOnce({ oncePerTransaction, orderingKey }: EventMessage): boolean {
  return oncePerTransaction && orderingKey !== null;
}

/** Returns the number of the new event; `null` if the event is known. */
function insertEvent(
  connection: SqliteConnection,
  event: EventMessage,
  digest: Uint8Array,
  { wall }: Times,
): number | null {
  const { company, id, eventType, occurredAt, orderingKey, stale, handlers, source, summary } =
    event;
  const isUndelivered = handlers.length === 0 && eventType !== TEST_EVENT_TYPE;
  return connection.insert(
    `INSERT INTO payments_inbox_event (company, id, event_type, occurred_at, received_at, ordering_key, once,
       digest, stale, undelivered, source, reference, amount, currency)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT DO NOTHING`,
    [
      company,
      toStored(id),
      toStored(eventType),
      occurredAt,
      wall,
      orderingKey === null ? null : toStored(orderingKey),
      isOnce(event) ? 1 : 0,
      digest,
      stale ? 1 : 0,
      !isUndelivered ? UNDELIVERED.none : stale ? UNDELIVERED.stale : UNDELIVERED.unhandled,
      SOURCE[source],
      summary?.reference == null ? null : toStored(summary.reference),
      summary?.amount ?? null,
      summary?.currency ?? null,
    ],
  );
}

function insertBody(
  connection: SqliteConnection,
  { raw, headers }: EventMessage,
  seq: number,
): void {
  connection.run(
    // `node:sqlite` binds an empty body as NULL.
    "INSERT INTO payments_inbox_body (event_seq, raw, headers) VALUES (?, coalesce(?, x''), ?)",
    [seq, raw, headers],
  );
}

/** Adds the deliveries of a new event; returns the handlers of those that run at once. */
function insertDeliveries(
  connection: SqliteConnection,
  { company, orderingKey, handlers, assign }: EventMessage,
  seq: number,
  { wall, clock }: Times,
): string[] {
  const ordering = orderingOf(company, orderingKey);
  const assignable = assignableHandlers(connection, assign);
  return handlers.flatMap((handler) => {
    if (assignable.includes(handler)) {
      // Inserts nothing if another delivery of the key runs, which the index of running deliveries detects, or is due.
      const inserted = connection.run(
        `INSERT INTO payments_inbox_delivery
           (event_seq, handler, state, attempts, token, worker, started_at, ordering, received_at)
         SELECT ?4, ?1, 'running', 1, 1, ?5, ?6, ?2, ?6 WHERE NOT (${ANY_DUE}) ON CONFLICT DO NOTHING`,
        [handler, ordering, clock, seq, assign!.worker, wall],
      );
      if (inserted > 0) return [handler];
    }
    // A delivery whose key is busy waits from the start, so that no claim has to make it wait.
    const busy = isOrderingBusy(connection, handler, ordering, clock);
    connection.run(
      `INSERT INTO payments_inbox_delivery (event_seq, handler, state, queue, due_at, ordering, received_at)
       VALUES (?, ?, 'pending', ?, ?, ?, ?)`,
      [seq, handler, busy ? 'waiting' : 'due', clock, ordering, wall],
    );
    if (busy) beganToWait(connection, handler);
    return [];
  });
}

function assignableHandlers(
  connection: SqliteConnection,
  assign: EventMessage['assign'],
): readonly string[] {
  if (assign === null || !isLive(connection, assign.worker)) return [];
  return unpaused(connection, assign.handlers);
}
