import { toHistory } from '../../store/stored-event.js';
import type { HistoryEntry } from '../../store/stored-event.js';
import type { DeliveryState, StoredDelivery, StoredEvent } from '../../store/inbox-store.js';
import type { Row } from '../connection/database-connection.js';
import { epochMs } from './planner-settings.js';
import { fromStored } from './stored-text.js';

interface DeliveryJson {
  readonly handler: string;
  readonly state: DeliveryState;
  readonly attempts: number;
  readonly error: string | null;
  readonly due: number | null;
  readonly finished: number | null;
  /** Absent in a list. */
  readonly history?: readonly HistoryEntry[] | null;
}

/** The columns of an event `e` in a list. */
export const listedColumns = (schema: string): string => columns(schema, '');

/** The columns of a whole event. Its body as text, because how PostgreSQL writes bytes depends on a setting. */
export const wholeColumns = (schema: string): string =>
  `${columns(schema, `, 'history', d.history`)}, encode(e.raw, 'base64') AS raw, e.headers, e.repeats`;

const columns = (schema: string, more: string): string => `
  e.seq, e.company, e.id, e.event_type, e.ordering_key, e.stale,
  ${epochMs('e.occurred_at')} AS occurred_ms, ${epochMs('e.received_at')} AS received_ms,
  (SELECT json_agg(json_build_object(
            'handler', d.handler, 'state', d.state, 'attempts', d.attempts, 'error', d.last_error,
            'due', ${epochMs('d.due_at')}, 'finished', ${epochMs('d.finished_at')}${more})
          ORDER BY d.handler)
     FROM ${schema}.delivery d WHERE d.event = e.seq) AS deliveries`;

export function toEvent(row: Row): StoredEvent {
  const { company, id, event_type, ordering_key, raw, headers, repeats, stale, deliveries } = row;
  return {
    company: fromStored(company!),
    id: fromStored(id!),
    eventType: fromStored(event_type!),
    occurredAt: toDate(row['occurred_ms']!),
    orderingKey: ordering_key == null ? null : fromStored(ordering_key),
    receivedAt: toDate(row['received_ms']!),
    raw: raw == null ? null : toBody(raw),
    headers: headers == null ? {} : (JSON.parse(fromStored(headers)) as Record<string, string>),
    stale: stale === 't',
    repeats: repeats == null ? [] : (JSON.parse(repeats) as [string, number][]).map(toRepeat),
    deliveries:
      deliveries == null ? [] : (JSON.parse(deliveries) as DeliveryJson[]).map(toDelivery),
  };
}

export function toDate(epochMs: string | number): Date {
  return new Date(Math.round(Number(epochMs)));
}

/** The elements of an array of numbers or booleans, as PostgreSQL writes it. */
export function elementsOf(array: string | null | undefined): string[] {
  return array == null ? [] : array.slice(1, -1).split(',');
}

/** From what `encode(…, 'base64')` wrote. */
export function toBody(text: string): Buffer {
  return Buffer.from(text, 'base64');
}

function toRepeat([id, ms]: [string, number]): StoredEvent['repeats'][number] {
  return { id: fromStored(id), receivedAt: toDate(ms) };
}

function toDelivery(json: DeliveryJson): StoredDelivery {
  return {
    handler: fromStored(json.handler),
    state: json.state,
    attempts: json.attempts,
    lastError: json.error === null ? null : fromStored(json.error),
    dueAt: json.due === null ? null : toDate(json.due),
    finishedAt: json.finished === null ? null : toDate(json.finished),
    history: toHistory(json.history ?? []).map((attempt) => ({
      ...attempt,
      error: attempt.error === null ? null : fromStored(attempt.error),
    })),
  };
}
