import { hash } from 'node:crypto';
import { HISTORY_LENGTH, toHistory } from '../../../inbox/store/stored-event.js';
import type { HistoryEntry } from '../../../inbox/store/stored-event.js';
import type {
  DeliveryState,
  StoredDelivery,
  StoredEvent,
} from '../../../inbox/store/inbox-store.js';
import type { SqliteConnection, Times } from '../thread/connection.js';
import { sourceName } from './schema.js';

/** The columns of {@link EventRow} in a query of `payments_inbox_event e`. */
export const EVENT_COLUMNS =
  'e.seq, e.company, e.id, e.event_type, e.occurred_at, e.ordering_key, e.received_at, e.stale, e.source, ' +
  'e.reference, e.amount, e.currency';

export interface EventRow {
  readonly seq: number;
  readonly company: string;
  readonly id: string;
  readonly event_type: string;
  readonly occurred_at: number;
  readonly ordering_key: string | null;
  readonly received_at: number;
  readonly stale: 0 | 1;
  readonly source: number;
  readonly reference: string | null;
  readonly amount: string | null;
  readonly currency: string | null;
}

interface DeliveryRow {
  readonly handler: string;
  readonly state: DeliveryState;
  readonly attempts: number;
  readonly last_error: string | null;
  readonly due_at: number | null;
  readonly started_at: number;
  readonly finished_at: number | null;
  readonly history: string;
}

/** A {@link StoredDelivery} as the thread sends it: times are numbers, and the history is JSON. */
export interface StoredDeliveryMessage extends Omit<
  StoredDelivery,
  'dueAt' | 'finishedAt' | 'history'
> {
  readonly dueAt: number | null;
  readonly finishedAt: number | null;
  readonly history: string;
}

/**
 * A {@link StoredEvent} as the thread sends it: times are numbers, the headers are JSON, the body is a `Uint8Array`.
 */
export interface StoredEventMessage extends Omit<
  StoredEvent,
  'raw' | 'headers' | 'occurredAt' | 'receivedAt' | 'repeats' | 'deliveries'
> {
  readonly occurredAt: number;
  readonly receivedAt: number;
  readonly raw: Uint8Array | null;
  readonly headers: string | null;
  readonly repeats: readonly { readonly id: string; readonly receivedAt: number }[];
  readonly deliveries: readonly StoredDeliveryMessage[];
}

/** The columns of an event that a list does not read. */
export interface EventBody {
  readonly raw: Uint8Array | null;
  readonly headers: string | null;
}

/** Adds the deliveries to an event. Without a `body`, as in a list, it also leaves out their histories. */
export function describe(
  connection: SqliteConnection,
  row: EventRow,
  body: EventBody | null,
  times: Times,
): StoredEventMessage {
  const deliveries = connection.all<DeliveryRow>(
    `SELECT handler, state, attempts, last_error, due_at, started_at, finished_at, history
     FROM payments_inbox_delivery WHERE event_seq = ? ORDER BY handler`,
    [row.seq],
  );
  return {
    company: row.company,
    id: fromStored(row.id),
    source: sourceName(row.source),
    eventType: fromStored(row.event_type),
    occurredAt: row.occurred_at,
    orderingKey: row.ordering_key === null ? null : fromStored(row.ordering_key),
    reference: row.reference === null ? null : fromStored(row.reference),
    amount: row.amount,
    currency: row.currency,
    receivedAt: row.received_at,
    raw: body?.raw ?? null,
    headers: body?.headers ?? null,
    stale: row.stale === 1,
    repeats: body === null ? [] : repeatsOf(connection, row.seq),
    deliveries: deliveries.map((delivery) => ({
      handler: delivery.handler,
      state: delivery.state,
      attempts: delivery.attempts,
      lastError: delivery.last_error,
      dueAt: delivery.due_at === null ? null : delivery.due_at - times.clock + times.wall,
      finishedAt: delivery.finished_at,
      history: body === null ? '[]' : historyOf(delivery),
    })),
  };
}

function repeatsOf(
  connection: SqliteConnection,
  seq: number,
): { readonly id: string; readonly receivedAt: number }[] {
  return connection
    .all<{ id: string; received_at: number }>(
      'SELECT id, received_at FROM payments_inbox_repeat WHERE event_seq = ? ORDER BY received_at, id',
      [seq],
    )
    .map(({ id, received_at }) => ({ id: fromStored(id), receivedAt: received_at }));
}

/** The columns that a history is made from. */
export type HistoryRow = Pick<
  DeliveryRow,
  'state' | 'attempts' | 'started_at' | 'finished_at' | 'history'
>;

/**
 * The complete history. The column `history` lacks the attempt that made the delivery done: other columns store it. The poll of
 * a fulfilled or cancelled expectation became done without an attempt.
 */
export function historyOf(row: HistoryRow): string {
  return row.state === 'done' && row.attempts > 0
    ? withAttempt(row, row.finished_at!, 'd')
    : row.history;
}

/** Adds an attempt to a history, and removes the oldest if there are more than {@link HISTORY_LENGTH}. */
export function withAttempt(
  { attempts, started_at, history }: Omit<HistoryRow, 'state' | 'finished_at'>,
  endedAt: number,
  outcome: HistoryEntry[3],
  error?: string,
): string {
  const tookMs = Math.max(0, endedAt - started_at);
  const attempt = [attempts, started_at, tookMs, outcome, ...(error === undefined ? [] : [error])];
  return JSON.stringify([...(JSON.parse(history) as unknown[]), attempt].slice(-HISTORY_LENGTH));
}

/** Text without characters that JSON escapes. Nearly every id is such a text. */
const PLAIN = /^[ !#-[\]-~]*$/;

/**
 * The form in which SQLite stores a text. SQLite's text is UTF-8, and some programs read it only up to the first NUL,
 * but a JavaScript string may contain NULs and lone surrogates. The stored text has the escapes of JSON, so that two
 * different strings are always stored as different texts. An ordinary id is stored unchanged.
 */
export function toStored(text: string): string {
  return PLAIN.test(text) ? text : JSON.stringify(text).slice(1, -1);
}

/** Reverses {@link toStored}. */
export function fromStored(stored: string): string {
  return stored.includes('\\') ? (JSON.parse(`"${stored}"`) as string) : stored;
}

/** Replaces NULs and lone surrogates in a text that only people read. */
export function toReadable(text: string): string {
  return text.toWellFormed().replaceAll('\0', '\uFFFD');
}

/**
 * A hash of texts. With 16 bytes it is much shorter than most texts, so that its indexes have far fewer pages; two
 * texts have the same hash by chance only once in 2^128. JSON escapes the quotes that separate the texts, so that two
 * different lists of texts never have the same hash input.
 */
export function hashOf(...texts: readonly string[]): Uint8Array {
  return hash('sha256', JSON.stringify(texts), 'buffer').subarray(0, 16);
}

/**
 * The hash of a company and an ordering key. Deliveries of one handler with the same hash never run at the same time.
 */
export function orderingOf(company: string, orderingKey: string | null): Uint8Array | null {
  return orderingKey === null ? null : hashOf(company, orderingKey);
}

// Conversions of the thread's responses, here and in the other files of this folder, copy every object and array.
// `postMessage` creates them in Node's own realm. A test runner with realms of its own, such as Jest, would find them
// different from equal objects of the application.

/** Converts an event of the thread. */
export function toEvent(event: StoredEventMessage): StoredEvent {
  return {
    ...event,
    occurredAt: new Date(event.occurredAt),
    receivedAt: new Date(event.receivedAt),
    raw: event.raw && toBuffer(event.raw),
    headers: JSON.parse(event.headers ?? '{}') as Record<string, string>,
    repeats: Array.from(event.repeats, ({ id, receivedAt }) => ({
      id,
      receivedAt: new Date(receivedAt),
    })),
    deliveries: Array.from(event.deliveries, toDelivery),
  };
}

function toDelivery(delivery: StoredDeliveryMessage): StoredDelivery {
  const { dueAt, finishedAt } = delivery;
  const history = toHistory(JSON.parse(delivery.history) as HistoryEntry[]);
  return { ...delivery, dueAt: toDate(dueAt), finishedAt: toDate(finishedAt), history };
}

function toDate(ms: number | null): Date | null {
  return ms === null ? null : new Date(ms);
}

/** The same bytes as a `Buffer`, without a copy. */
export function toBuffer({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength);
}
