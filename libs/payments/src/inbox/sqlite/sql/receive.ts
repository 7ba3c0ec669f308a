import { hash } from 'node:crypto';
import { TEST_EVENT_TYPE } from '../../../events/payment-event.js';
import type { IncomingEvent, StoreReceipt } from '../../store/inbox-store.js';
import type { Times } from '../store-clock.js';
import type { SqliteConnection } from '../thread/connection.js';
import { catalogVersion, unpaused } from './catalog.js';
import { newerHandled, orderingState } from './ordering.js';
import { fromStored, hashOf, orderingOf, toStored } from './stored-rows.js';
import { isLive } from './workers.js';

/** Other events of one transaction that are noted on the first. */
const MAX_REPEATS = 20;

/** An {@link IncomingEvent} on its way to the thread: a `Buffer` arrives there as a `Uint8Array`. */
export interface EventMessage extends Omit<IncomingEvent, 'raw' | 'occurredAt' | 'headers'> {
  readonly occurredAt: number;
  readonly raw: Uint8Array;
  /** A JSON object, as it is stored. */
  readonly headers: string;
}

/** A {@link StoreReceipt} on its way from the thread, without what the store has sent to it. */
export interface ReceiptMessage extends Omit<StoreReceipt, 'claimed'> {
  /** The store's number of a new event; 0 without one. */
  readonly seq: number;
  readonly receivedAt: number;
  readonly claimed: readonly { readonly handler: string; readonly newerHandled: boolean }[];
}

/** Stores events that are new, each with its deliveries, and reports the others. */
export function receive(
  connection: SqliteConnection,
  { events }: { readonly events: readonly EventMessage[] },
  times: Times,
): ReceiptMessage[] {
  return events.map((event) => {
    const digest = hash('sha256', event.raw, 'buffer');
    const onceHash =
      event.onceKey === null ? null : hashOf(event.company, event.eventType, event.onceKey);
    const isCurrent = event.catalogVersion === catalogVersion(connection);
    // Nearly all are new, so an event is looked up only if the insert finds it in an index.
    const seq = isCurrent ? insertEvent(connection, event, digest, onceHash, times) : null;
    const receipt = { id: event.id, seq: seq ?? 0, receivedAt: times.wall };
    if (seq === null) {
      const known = findKnown(connection, event, digest, onceHash, times);
      return { ...receipt, claimed: [], pending: false, ...(known ?? { outcome: 'outdated' }) };
    }
    insertBody(connection, event, seq);
    const claimed = insertDeliveries(connection, event, seq, times);
    const pending = claimed.length < event.handlers.length;
    return { ...receipt, claimed, pending, outcome: 'stored' };
  });
}

/** The receipt of an event that is known by its id, or as another event of its transaction. */
function findKnown(
  connection: SqliteConnection,
  event: EventMessage,
  digest: Buffer,
  onceHash: Uint8Array | null,
  times: Times,
): Pick<StoreReceipt, 'id' | 'outcome'> | undefined {
  const same = connection.get<{ digest: Uint8Array }>(
    'SELECT digest FROM payments_inbox_event WHERE id = ? AND company = ?',
    [toStored(event.id), event.company],
  );
  if (same !== undefined) {
    return { id: event.id, outcome: digest.equals(same.digest) ? 'duplicate' : 'conflict' };
  }
  if (onceHash === null) return undefined;
  const first = connection.get<{ seq: number; id: string }>(
    'SELECT seq, id FROM payments_inbox_event WHERE once_hash = ?',
    [onceHash],
  );
  if (first === undefined) return undefined;
  noteRepeat(connection, first.seq, event.id, times);
  return { id: fromStored(first.id), outcome: 'duplicate' };
}

function noteRepeat(connection: SqliteConnection, seq: number, id: string, { wall }: Times): void {
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

/** Returns the number of the new event; `null` if it is known. */
function insertEvent(
  connection: SqliteConnection,
  event: EventMessage,
  digest: Uint8Array,
  onceHash: Uint8Array | null,
  { wall }: Times,
): number | null {
  const { company, id, eventType, occurredAt, orderingKey, stale, handlers } = event;
  const needsNone = handlers.length > 0 || eventType === TEST_EVENT_TYPE;
  return connection.insert(
    `INSERT INTO payments_inbox_event (company, id, event_type, occurred_at, received_at, ordering_key, once_hash,
       digest, stale, undelivered)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
    [
      company,
      toStored(id),
      toStored(eventType),
      occurredAt,
      wall,
      orderingKey === null ? null : toStored(orderingKey),
      onceHash,
      digest,
      stale ? 1 : 0,
      needsNone ? 0 : stale ? 2 : 1,
    ],
  );
}

function insertBody(
  connection: SqliteConnection,
  { raw, headers }: EventMessage,
  seq: number,
): void {
  connection.run(
    // An empty body is bound as NULL.
    "INSERT INTO payments_inbox_body (event_seq, raw, headers) VALUES (?, coalesce(?, x''), ?)",
    [seq, raw, headers],
  );
}

/** Adds the deliveries of a new event; returns those that run at once. */
function insertDeliveries(
  connection: SqliteConnection,
  { company, orderingKey, occurredAt, handlers, assign }: EventMessage,
  seq: number,
  { wall, clock }: Times,
): { readonly handler: string; readonly newerHandled: boolean }[] {
  const ordering = orderingOf(company, orderingKey);
  const assignable = assignableHandlers(connection, assign);
  return handlers.flatMap((handler) => {
    const { free, busy } = orderingState(connection, handler, ordering, clock);
    if (!assignable.includes(handler) || !free) {
      // One whose key is busy is held from the start, so that no claim has to move it.
      connection.run(
        `INSERT INTO payments_inbox_delivery
           (event_seq, handler, state, queue, due_at, ordering, occurred_at, received_at)
         VALUES (?, ?, 'pending', ?, ?, ?, ?, ?)`,
        [seq, handler, busy ? 'held' : 'due', clock, ordering, occurredAt, wall],
      );
      return [];
    }
    connection.run(
      `INSERT INTO payments_inbox_delivery
         (event_seq, handler, state, attempts, token, worker, started_at, ordering, occurred_at, received_at)
       VALUES (?, ?, 'running', 1, 1, ?, ?, ?, ?, ?)`,
      [seq, handler, assign!.worker, wall, ordering, occurredAt, wall],
    );
    return [{ handler, newerHandled: newerHandled(connection, handler, ordering, occurredAt) }];
  });
}

function assignableHandlers(
  connection: SqliteConnection,
  assign: EventMessage['assign'],
): readonly string[] {
  if (assign === null || !isLive(connection, assign.worker)) return [];
  return unpaused(connection, assign.handlers);
}
