import { hash } from 'node:crypto';
import type { IncomingEvent, StoreReceipt } from '../inbox-store.js';
import type { SqliteConnection } from './sqlite.connection.js';
import { laneOf, toStored, fromStored } from './sqlite.text.js';

/** An {@link IncomingEvent} on its way to the thread: a `Buffer` arrives there as a `Uint8Array`. */
export interface EventMessage extends Omit<IncomingEvent, 'raw' | 'occurredAt'> {
  readonly occurredAt: number;
  readonly raw: Uint8Array;
}

interface KnownRow {
  readonly id: string;
  readonly digest: Uint8Array;
}

/** Stores events that are new, each with its deliveries, and reports the others. */
export function receive(
  connection: SqliteConnection,
  { events }: { readonly events: readonly EventMessage[] },
  now: number,
): StoreReceipt[] {
  return events.map((event) => {
    const digest = hash('sha256', event.raw, 'buffer');
    const known = findKnown(connection, event);
    if (known === undefined) {
      insert(connection, event, digest, now);
      return { outcome: 'stored', id: event.id };
    }
    const id = fromStored(known.id);
    const conflict = id === event.id && !digest.equals(known.digest);
    return { outcome: conflict ? 'conflict' : 'duplicate', id };
  });
}

/** The event of that id, or else the one that it is a copy of. */
function findKnown(connection: SqliteConnection, event: EventMessage): KnownRow | undefined {
  return connection.get<KnownRow>(
    `SELECT id, digest FROM payments_inbox_event WHERE id = ?1 AND company = ?3
     UNION ALL
     SELECT id, digest FROM payments_inbox_event WHERE dedupe_key = ?2 AND company = ?3
     UNION ALL
     SELECT id, digest FROM payments_inbox_event WHERE id = ?2 AND company = ?3 AND dedupe_key IS NULL`,
    toStored(event.id),
    toStored(event.dedupeKey),
    event.company,
  );
}

function insert(
  connection: SqliteConnection,
  event: EventMessage,
  digest: Uint8Array,
  now: number,
): void {
  const { company, id, dedupeKey, orderingKey, occurredAt, handlers, stale } = event;
  const seq = connection.insert(
    `INSERT INTO payments_inbox_event
       (company, id, dedupe_key, event_type, occurred_at, ordering_key, received_at, digest, deliveries, open, stale)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    company,
    toStored(id),
    dedupeKey === id ? null : toStored(dedupeKey),
    toStored(event.eventType),
    occurredAt,
    orderingKey === null ? null : toStored(orderingKey),
    now,
    digest,
    handlers.length,
    handlers.length,
    stale ? 1 : 0,
  );
  connection.run(
    // An empty body is bound as NULL.
    "INSERT INTO payments_inbox_body (event_seq, raw, headers) VALUES (?, coalesce(?, x''), ?)",
    seq,
    event.raw,
    JSON.stringify(event.headers),
  );
  const lane = laneOf(company, orderingKey);
  for (const handler of handlers) {
    connection.run(
      `INSERT INTO payments_inbox_delivery
         (event_seq, handler, state, due_at, lane, occurred_at, received_at)
       VALUES (?, ?, 'pending', ?, ?, ?, ?)`,
      seq,
      handler,
      now,
      lane,
      occurredAt,
      now,
    );
  }
}
