import { hash } from 'node:crypto';
import { HISTORY_LENGTH } from '../../store/stored-event.js';
import type { HistoryEntry } from '../../store/stored-event.js';
import type { DeliveryState, StoredDelivery, StoredEvent } from '../../store/inbox-store.js';
import type { Times } from '../store-clock.js';
import type { SqliteConnection } from '../thread/connection.js';

/** The columns of {@link EventRow}, of `payments_inbox_event e`. */
export const EVENT_COLUMNS =
  'e.seq, e.company, e.id, e.event_type, e.occurred_at, e.ordering_key, e.received_at, e.stale';

export interface EventRow {
  readonly seq: number;
  readonly company: string;
  readonly id: string;
  readonly event_type: string;
  readonly occurred_at: number;
  readonly ordering_key: string | null;
  readonly received_at: number;
  readonly stale: 0 | 1;
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

/** A delivery on its way from the thread: times are numbers, and its history is JSON. */
export interface StoredDeliveryMessage extends Omit<
  StoredDelivery,
  'dueAt' | 'finishedAt' | 'history'
> {
  readonly dueAt: number | null;
  readonly finishedAt: number | null;
  readonly history: string;
}

/** An event on its way from the thread: times are numbers, its headers JSON, its body a `Uint8Array`. */
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

/** What a list leaves out. */
export interface EventBody {
  readonly raw: Uint8Array | null;
  readonly headers: string | null;
}

/** The event as the contract shows it, with its deliveries: in a list, without its body and their histories. */
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
    eventType: fromStored(row.event_type),
    occurredAt: row.occurred_at,
    orderingKey: row.ordering_key === null ? null : fromStored(row.ordering_key),
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

/** What a history is made of. */
export type HistoryRow = Pick<
  DeliveryRow,
  'state' | 'attempts' | 'started_at' | 'finished_at' | 'history'
>;

/** The whole history of a delivery. The attempt that made it done is in the other columns, so that it is stored once. */
export function historyOf(row: HistoryRow): string {
  return row.state === 'done' ? withAttempt(row, row.finished_at!, 'd') : row.history;
}

/** A history with one more attempt; the oldest of too many are left out. */
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

/** What JSON escapes nothing of: nearly every id. */
const PLAIN = /^[ !#-[\]-~]*$/;

/**
 * Text as it is stored. SQLite's text is UTF-8 and ends, for some readers, at a NUL; a JavaScript string may
 * hold NULs and lone surrogates. What JSON escapes is stored escaped, so that two strings never become one;
 * an ordinary id is stored as it is.
 */
export function toStored(text: string): string {
  return PLAIN.test(text) ? text : JSON.stringify(text).slice(1, -1);
}

/** The text that {@link toStored} stored. */
export function fromStored(stored: string): string {
  return stored.includes('\\') ? (JSON.parse(`"${stored}"`) as string) : stored;
}

/** Any text, as people can read it. */
export function toReadable(text: string): string {
  return text.toWellFormed().replaceAll('\0', '\uFFFD');
}

/**
 * A hash of texts. With 16 bytes it is much shorter than most texts, so that its indexes have far fewer pages, and two
 * texts have the same hash by chance only once in 2^128. JSON escapes what separates the texts, so that two different
 * lists of texts are never hashed as the same bytes.
 */
export function hashOf(...texts: readonly string[]): Uint8Array {
  return hash('sha256', JSON.stringify(texts), 'buffer').subarray(0, 16);
}

/** Identifies the deliveries of a handler that never run at the same time. */
export function orderingOf(company: string, orderingKey: string | null): Uint8Array | null {
  return orderingKey === null ? null : hashOf(company, orderingKey);
}
