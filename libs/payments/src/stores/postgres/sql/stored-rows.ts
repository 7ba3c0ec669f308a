import { HISTORY_LENGTH, toHistory } from '../../../inbox/store/stored-event.js';
import type { HistoryEntry } from '../../../inbox/store/stored-event.js';
import type {
  DeliveryState,
  EventSource,
  StoredDelivery,
  StoredEvent,
} from '../../../inbox/store/inbox-store.js';
import type { ResultRow } from '../connection/database-connection.js';

/** Marks an escaped character. It is a private-use character, and is escaped itself. */
const ESCAPE = '\uE000';
// oxlint-disable-next-line no-control-regex
const UNSTORABLE = /[\0\uE000]|\p{Surrogate}/gu;
const ESCAPED = /\uE000([0-9a-f]{4})/g;

/**
 * A text as PostgreSQL can store it. PostgreSQL cannot store U+0000 or a lone surrogate, and a text from JSON may have both.
 * The function escapes them. {@link fromStored} returns exactly the same text, and different texts stay different.
 */
export function toStored(text: string): string {
  return text.replace(
    UNSTORABLE,
    (character) => ESCAPE + character.charCodeAt(0).toString(16).padStart(4, '0'),
  );
}

/** Returns the original text of a result of {@link toStored}. */
export function fromStored(text: string): string {
  if (!text.includes(ESCAPE)) return text;
  return text.replace(ESCAPED, (_match, code: string) => String.fromCharCode(parseInt(code, 16)));
}

/** Sorts after every character in a text, so that `prefix` to `prefix + LAST` are the texts that begin with a prefix. */
export const LAST = '\u{10FFFF}';

/** The date of a time in milliseconds. */
export function toDate(ms: string | number): Date {
  return new Date(Number(ms));
}

/** The elements of an array of numbers or booleans, from the text that PostgreSQL writes for it. */
export function elementsOf(array: string | null | undefined): string[] {
  return array == null ? [] : array.slice(1, -1).split(',');
}

/** A delivery as {@link wholeColumns} and {@link listedColumns} select it. Times are in milliseconds since the epoch. */
interface DeliveryJson {
  readonly handler: string;
  readonly state: DeliveryState;
  readonly attempts: number;
  readonly error: string | null;
  readonly due: number | null;
  readonly finished: number | null;
  /** Absent in a list, as the history. */
  readonly started?: number;
  readonly history?: readonly HistoryEntry[];
}

/** The columns of an event `e` for {@link toEvent}, without what a list leaves out. */
export const listedColumns = (schema: string): string => columns(schema, '');

/** All columns of an event `e` for {@link toEvent}. The body is text: how PostgreSQL writes bytes depends on a setting. */
export const wholeColumns = (schema: string): string =>
  `${columns(schema, `, 'started', d.started_at, 'history', COALESCE(d.history, '[]')`)}, encode(e.raw, 'base64') AS raw, e.headers, e.repeats`;

const columns = (schema: string, more: string): string => `
  e.seq, e.company, e.id, e.source, e.event_type, e.ordering_key, e.reference, e.amount, e.currency, e.stale,
  e.occurred_at, e.received_at,
  (SELECT json_agg(json_build_object(
            'handler', d.handler, 'state', d.state, 'attempts', d.attempts, 'error', d.last_error,
            'due', d.due_at, 'finished', d.finished_at${more})
          ORDER BY d.handler)
     FROM ${schema}.delivery d WHERE d.event = e.seq) AS deliveries`;

/** The event of a row with {@link listedColumns} or {@link wholeColumns}. */
export function toEvent(row: ResultRow): StoredEvent {
  const text = (column: string): string | null => {
    const value = row[column];
    return value == null ? null : fromStored(value);
  };
  const { company, id, event_type, raw, headers, repeats, stale, deliveries } = row;
  return {
    company: fromStored(company!),
    id: fromStored(id!),
    source: row['source'] as EventSource,
    eventType: fromStored(event_type!),
    occurredAt: toDate(row['occurred_at']!),
    orderingKey: text('ordering_key'),
    reference: text('reference'),
    amount: text('amount'),
    currency: text('currency'),
    receivedAt: toDate(row['received_at']!),
    raw: raw == null ? null : Buffer.from(raw, 'base64'),
    headers: headers == null ? {} : (JSON.parse(fromStored(headers)) as Record<string, string>),
    stale: stale === 't',
    repeats: repeats == null ? [] : (JSON.parse(repeats) as [string, number][]).map(toRepeat),
    deliveries:
      deliveries == null ? [] : (JSON.parse(deliveries) as DeliveryJson[]).map(toDelivery),
  };
}

function toRepeat([id, receivedMs]: [string, number]): StoredEvent['repeats'][number] {
  return { id: fromStored(id), receivedAt: toDate(receivedMs) };
}

function toDelivery(json: DeliveryJson): StoredDelivery {
  return {
    handler: fromStored(json.handler),
    state: json.state,
    attempts: json.attempts,
    lastError: json.error === null ? null : fromStored(json.error),
    dueAt: json.due === null ? null : toDate(json.due),
    finishedAt: json.finished === null ? null : toDate(json.finished),
    history: toHistory(historyOf(json)).map((attempt) => ({
      ...attempt,
      error: attempt.error === null ? null : fromStored(attempt.error),
    })),
  };
}

/** The history with the attempt that made the delivery done, which is stored in other columns. */
function historyOf({
  state,
  attempts,
  started,
  finished,
  history = [],
}: DeliveryJson): readonly HistoryEntry[] {
  if (state !== 'done' || started === undefined) return history;
  const last: HistoryEntry = [attempts, started, Math.max(0, finished! - started), 'd'];
  return [...history, last].slice(-HISTORY_LENGTH);
}
