import type { DeliveryState, StoredDelivery, StoredEvent } from '../store.contract.js';
import type { SqliteConnection } from './sqlite.connection.js';
import { fromStored } from './sqlite.text.js';

/** The columns of {@link EventRow}, of `payments_inbox_event e`. */
export const EVENT_COLUMNS =
  'e.seq, e.company, e.id, e.event_type, e.occurred_at, e.ordering_key, e.received_at';

export interface EventRow {
  readonly seq: number;
  readonly company: string;
  readonly id: string;
  readonly event_type: string;
  readonly occurred_at: number;
  readonly ordering_key: string | null;
  readonly received_at: number;
}

interface DeliveryRow {
  readonly handler: string;
  readonly state: DeliveryState;
  readonly attempts: number;
  readonly last_error: string | null;
  readonly due_at: number | null;
  readonly finished_at: number | null;
}

/** A delivery on its way from the thread: times are numbers. */
export interface DeliveryMessage extends Omit<StoredDelivery, 'dueAt' | 'finishedAt'> {
  readonly dueAt: number | null;
  readonly finishedAt: number | null;
}

/** An event on its way from the thread: times are numbers, and its body arrives as a `Uint8Array`. */
export interface EventAnswer extends Omit<
  StoredEvent,
  'raw' | 'occurredAt' | 'receivedAt' | 'deliveries'
> {
  readonly occurredAt: number;
  readonly receivedAt: number;
  readonly raw: Uint8Array | null;
  readonly deliveries: readonly DeliveryMessage[];
}

/** The event as the contract shows it, with its deliveries. */
export function describe(
  connection: SqliteConnection,
  row: EventRow,
  raw: Uint8Array | null,
): EventAnswer {
  const deliveries = connection.all<DeliveryRow>(
    `SELECT handler, state, attempts, last_error, due_at, finished_at
     FROM payments_inbox_delivery WHERE event_seq = ? ORDER BY handler`,
    row.seq,
  );
  return {
    company: row.company,
    id: fromStored(row.id),
    eventType: fromStored(row.event_type),
    occurredAt: row.occurred_at,
    orderingKey: row.ordering_key === null ? null : fromStored(row.ordering_key),
    receivedAt: row.received_at,
    raw,
    deliveries: deliveries.map(({ handler, state, attempts, last_error, due_at, finished_at }) => ({
      handler,
      state,
      attempts,
      lastError: last_error,
      dueAt: due_at,
      finishedAt: finished_at,
    })),
  };
}
