import { hash } from 'node:crypto';
import { TEST_EVENT_TYPE } from '../../../events/payment-event.js';
import type { IncomingEvent, StoreReceipt } from '../../inbox-store.js';
import type { Times } from '../store-clock.js';
import type { SqliteConnection } from '../thread/connection.js';
import { catalogVersion } from './catalog.js';
import { newerHandled } from './claim.js';
import type { ClaimedMessage } from './claim.js';
import { laneState } from './lanes.js';
import { unpaused } from './pause.js';
import { fromStored, laneOf, toStored } from './text.js';
import { isLive } from './workers.js';

/** Other events of one transaction that are noted on the first. */
const MAX_REPEATS = 20;

/** An {@link IncomingEvent} on its way to the thread: a `Buffer` arrives there as a `Uint8Array`. */
export interface EventMessage extends Omit<IncomingEvent, 'raw' | 'occurredAt'> {
  readonly occurredAt: number;
  readonly raw: Uint8Array;
}

/** A {@link StoreReceipt} on its way from the thread, which leaves out the bodies that it was sent. */
export interface ReceiptMessage extends Omit<StoreReceipt, 'claimed'> {
  readonly claimed: readonly ClaimedMessage[];
}

interface KnownRow {
  readonly seq: number;
  readonly id: string;
  readonly digest: Uint8Array;
}

/** Stores events that are new, each with its deliveries, and reports the others. */
export function receive(
  connection: SqliteConnection,
  { events }: { readonly events: readonly EventMessage[] },
  times: Times,
): ReceiptMessage[] {
  const version = catalogVersion(connection);
  return events.map((event) => {
    const none = { id: event.id, claimed: [], pending: false };
    const digest = hash('sha256', event.raw, 'buffer');
    const same = findById(connection, event);
    if (same !== undefined) {
      return { ...none, outcome: digest.equals(same.digest) ? 'duplicate' : 'conflict' };
    }
    const onceHash = onceHashOf(event);
    const first = onceHash && findByOnceHash(connection, onceHash);
    if (first) {
      noteRepeat(connection, first.seq, event.id, times);
      return { ...none, id: fromStored(first.id), outcome: 'duplicate' };
    }
    if (event.catalogVersion !== version) return { ...none, outcome: 'outdated' };
    const seq = insertEvent(connection, event, digest, onceHash, times);
    const claimed = insertDeliveries(connection, event, seq, times);
    const pending = claimed.length < event.handlers.length;
    return { id: event.id, claimed, pending, outcome: 'stored' };
  });
}

function findById(connection: SqliteConnection, event: EventMessage): KnownRow | undefined {
  return connection.get<KnownRow>(
    'SELECT seq, id, digest FROM payments_inbox_event WHERE id = ? AND company = ?',
    [toStored(event.id), event.company],
  );
}

function findByOnceHash(connection: SqliteConnection, onceHash: Uint8Array): KnownRow | undefined {
  return connection.get<KnownRow>(
    'SELECT seq, id, digest FROM payments_inbox_event WHERE once_hash = ?',
    [onceHash],
  );
}

/** No two triples have one text: JSON escapes what separates them. */
function onceHashOf({ company, eventType, onceKey }: EventMessage): Uint8Array | null {
  if (onceKey === null) return null;
  return hash('sha256', JSON.stringify([company, eventType, onceKey]), 'buffer');
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

function insertEvent(
  connection: SqliteConnection,
  event: EventMessage,
  digest: Uint8Array,
  onceHash: Uint8Array | null,
  { wall }: Times,
): number {
  const { company, id, eventType, occurredAt, orderingKey, stale, handlers } = event;
  const needsNone = handlers.length > 0 || eventType === TEST_EVENT_TYPE;
  const seq = connection.insert(
    `INSERT INTO payments_inbox_event (company, id, event_type, occurred_at, received_at, ordering_key, once_hash,
       digest, stale, undelivered)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
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
  connection.run(
    // An empty body is bound as NULL.
    "INSERT INTO payments_inbox_body (event_seq, raw, headers) VALUES (?, coalesce(?, x''), ?)",
    [seq, event.raw, JSON.stringify(event.headers)],
  );
  return seq;
}

/** Adds the deliveries of a new event; returns those that run at once. */
function insertDeliveries(
  connection: SqliteConnection,
  event: EventMessage,
  seq: number,
  times: Times,
): ClaimedMessage[] {
  const { company, id, orderingKey, occurredAt, handlers, assign } = event;
  const lane = laneOf(company, orderingKey);
  const assignable = assignableHandlers(connection, assign);
  const claimed: ClaimedMessage[] = [];
  for (const handler of handlers) {
    const { free, busy } = laneState(connection, handler, lane, times.clock);
    if (!assignable.has(handler) || !free) {
      insertPending(connection, { seq, handler, lane, occurredAt }, busy, times);
      continue;
    }
    connection.run(
      `INSERT INTO payments_inbox_delivery
         (event_seq, handler, state, attempts, token, worker, started_at, lane, occurred_at, received_at)
       VALUES (?, ?, 'running', 1, 1, ?, ?, ?, ?, ?)`,
      [seq, handler, assign!.worker, times.wall, lane, occurredAt, times.wall],
    );
    claimed.push({
      company,
      id,
      handler,
      token: 1,
      seq,
      attempt: 1,
      receivedAt: times.wall,
      ageMs: 0,
      raw: null,
      newerHandled: newerHandled(connection, handler, lane, occurredAt),
      crashes: 0,
    });
  }
  return claimed;
}

function assignableHandlers(
  connection: SqliteConnection,
  assign: EventMessage['assign'],
): ReadonlySet<string> {
  if (assign === null || !isLive(connection, assign.worker)) return new Set();
  return new Set(unpaused(connection, assign.handlers));
}

/** One whose key is busy is held from the start, so that no claim has to move it. */
function insertPending(
  connection: SqliteConnection,
  delivery: {
    readonly seq: number;
    readonly handler: string;
    readonly lane: string | null;
    readonly occurredAt: number;
  },
  held: boolean,
  { wall, clock }: Times,
): void {
  const { seq, handler, lane, occurredAt } = delivery;
  connection.run(
    `INSERT INTO payments_inbox_delivery (event_seq, handler, state, held, due_at, lane, occurred_at, received_at)
     VALUES (?, ?, 'pending', ?, ?, ?, ?, ?)`,
    [seq, handler, held ? 1 : 0, clock, lane, occurredAt, wall],
  );
}
