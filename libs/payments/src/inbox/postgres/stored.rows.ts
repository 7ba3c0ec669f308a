import type { DeliveryState, StoredDelivery, StoredEvent } from '../store.contract.js';
import type { Row } from './database.connection.js';
import { fromStored } from './stored.text.js';

interface DeliveryJson {
  readonly handler: string;
  readonly state: DeliveryState;
  readonly attempts: number;
  readonly error: string | null;
  readonly due: number | null;
  readonly finished: number | null;
}

/** Milliseconds since the epoch, whatever the session's time zone and date style. */
export const epochMs = (column: string): string => `extract(epoch FROM ${column}) * 1000`;

/** What {@link toEvent} reads of an event `e`. */
export const eventColumns = (schema: string): string => `
  e.seq, e.company, e.id, e.event_type, e.ordering_key,
  ${epochMs('e.occurred_at')} AS occurred_ms, ${epochMs('e.received_at')} AS received_ms,
  (SELECT json_agg(json_build_object(
            'handler', d.handler, 'state', d.state, 'attempts', d.attempts, 'error', d.last_error,
            'due', ${epochMs('d.due_at')}, 'finished', ${epochMs('d.finished_at')})
          ORDER BY d.handler)
     FROM ${schema}.deliveries d WHERE d.event = e.seq) AS deliveries`;

/** The body of `e`: as text, because how PostgreSQL writes bytes depends on a setting. */
export const BODY = `encode(e.raw, 'base64') AS raw`;

export function toEvent(row: Row): StoredEvent {
  const { company, id, event_type, ordering_key, raw, deliveries } = row;
  return {
    company: fromStored(company!),
    id: fromStored(id!),
    eventType: fromStored(event_type!),
    occurredAt: toDate(row['occurred_ms']!),
    orderingKey: ordering_key == null ? null : fromStored(ordering_key),
    receivedAt: toDate(row['received_ms']!),
    raw: raw == null ? null : toBody(raw),
    deliveries:
      deliveries == null ? [] : (JSON.parse(deliveries) as DeliveryJson[]).map(toDelivery),
  };
}

export function toDate(epochMs: string | number): Date {
  return new Date(Math.round(Number(epochMs)));
}

/** What {@link BODY} was written from. */
export function toBody(text: string): Buffer {
  return Buffer.from(text, 'base64');
}

function toDelivery(json: DeliveryJson): StoredDelivery {
  return {
    handler: fromStored(json.handler),
    state: json.state,
    attempts: json.attempts,
    lastError: json.error === null ? null : fromStored(json.error),
    dueAt: json.due === null ? null : toDate(json.due),
    finishedAt: json.finished === null ? null : toDate(json.finished),
  };
}
