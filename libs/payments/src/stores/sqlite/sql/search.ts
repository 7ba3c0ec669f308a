import type { EventFilter } from '../../../inbox/store/inbox-store.js';
import { MAX_DISORDER_MS } from '../../../inbox/store/stored-event.js';
import type { SqliteConnection, Times } from '../thread/connection.js';
import { SOURCE, UNDELIVERED, UNDONE } from './schema.js';
import { describe, EVENT_COLUMNS, toStored } from './stored-rows.js';
import type { EventBody, EventRow, StoredEventMessage } from './stored-rows.js';
import { isFound } from './text-search.js';
import type { Found } from './text-search.js';

/**
 * How many events one slice reads: a few milliseconds of work, so that a search of all events never delays a receive.
 */
export const SLICE = 2000;

export interface ListRequest {
  readonly filter: EventFilter;
  /** What the search for {@link EventFilter.search} found; `null` without a search. */
  readonly found: Found | null;
  readonly order: 'newest' | 'oldest';
  readonly limit: number;
  /** A number of an event. */
  readonly after: number | null;
}

/** What one slice found, each with its position in the list. */
export interface Slice<Found, Position> {
  readonly found: readonly (Found & { readonly at: Position })[];
  /** `after` of the next slice; `null` after the last slice. */
  readonly next: Position | null;
}

/** The events that one slice found. */
export type ListSlice = Slice<{ readonly event: StoredEventMessage }, number>;

/**
 * Reads a page of a list slice by slice, so that the thread can run receives between two slices of a long search. After
 * `maxSlices`, the page ends, and the next page continues there.
 */
export async function readPage<Found, Position>(
  limit: number,
  after: Position | null,
  readSlice: (part: { limit: number; after: Position | null }) => Promise<Slice<Found, Position>>,
  maxSlices = Infinity,
): Promise<Slice<Found, Position>> {
  let from = after;
  const found: (Found & { readonly at: Position })[] = [];
  let slices = 0;
  do {
    // Reads one row more than requested, to find out whether there is another page.
    const slice = await readSlice({ limit: limit + 1 - found.length, after: from });
    found.push(...slice.found);
    from = slice.next;
    slices += 1;
  } while (from !== null && found.length <= limit && slices < maxSlices);
  const next = found.length > limit ? found[limit - 1]!.at : from;
  return { found: found.slice(0, limit), next };
}

/** Conditions of a `WHERE`, and the values of their placeholders. */
interface Conditions {
  readonly sql: string[];
  readonly values: unknown[];
}

/** Reads the next {@link SLICE} events in order; returns those that match the filter, at most `limit`. */
export function listSlice(
  connection: SqliteConnection,
  request: ListRequest,
  times: Times,
): ListSlice {
  const { filter, found, order, limit } = request;
  const { table, seq, all = [] } = sourceOf(filter, found);
  const direction = order === 'newest' ? 'DESC' : 'ASC';
  const within = rangeOf(connection, request, seq);
  const matching = matchOf(filter, found);
  // Without conditions, every event matches.
  const size = matching.sql.length === 0 ? Math.min(SLICE, limit) : SLICE;
  const slice = `FROM ${table} ${within.sql.join(' AND ')} ORDER BY ${seq} ${direction}`;
  const last = connection.get<{ seq: number }>(`SELECT ${seq} AS seq ${slice} LIMIT 1 OFFSET ?`, [
    ...all,
    ...within.values,
    size - 1,
  ]);
  const rows = connection.all<EventRow>(
    `SELECT ${EVENT_COLUMNS} FROM payments_inbox_event e
     WHERE e.seq IN (SELECT ${seq} ${slice} LIMIT ?)
     ${matching.sql.map((clause) => `AND ${clause}`).join(' ')} ORDER BY e.seq ${direction} LIMIT ?`,
    [...all, ...within.values, size, ...matching.values, limit],
  );
  return {
    found: rows.map((row) => ({ at: row.seq, event: describe(connection, row, null, times) })),
    next: last?.seq ?? null,
  };
}

/**
 * Few events that a search found, or the smallest index that contains all events that can match, in the order of their
 * numbers. With a plus before the number of the event, SQLite sorts the few events instead of reading all in order.
 */
function sourceOf(
  { ids, state }: EventFilter,
  found: Found | null,
): { table: string; seq: string; all?: unknown[] } {
  if (found?.many === false) {
    const table = `payments_inbox_event
      WHERE seq IN (SELECT value FROM json_each(?))`;
    return { table, seq: '+seq', all: [found.seqs] };
  }
  if (ids !== undefined) return { table: 'payments_inbox_event WHERE 1', seq: '+seq' };
  if (isUndone(state)) {
    const source =
      state === 'running' ? "running WHERE state = 'running'" : `undone WHERE ${UNDONE}`;
    const table = `payments_inbox_delivery INDEXED BY payments_inbox_delivery_${source}`;
    return { table, seq: 'event_seq' };
  }
  const table = isUndelivered(state)
    ? `payments_inbox_event INDEXED BY payments_inbox_event_undelivered
       WHERE undelivered > 0 AND undelivered = ${UNDELIVERED[state]}`
    : 'payments_inbox_event NOT INDEXED WHERE 1';
  return { table, seq: 'seq' };
}

/** Whether the state is a reason why an event has no deliveries. */
function isUndelivered(state: EventFilter['state']): state is 'unhandled' | 'stale' {
  return state === 'unhandled' || state === 'stale';
}

/** Whether the state is a state of deliveries, other than done. */
function isUndone(state: EventFilter['state']): boolean {
  return state !== undefined && state !== 'done' && !isUndelivered(state);
}

/** The conditions on the index: they select the entries that this slice and the later slices read. */
function rangeOf(
  connection: SqliteConnection,
  { filter, found, order, after }: ListRequest,
  seq: string,
): Conditions {
  const { ids, from, to, state } = filter;
  const sql = [''];
  const values: unknown[] = [];
  const add = (clause: string, ...bound: unknown[]) => {
    sql.push(clause);
    values.push(...bound);
  };
  if (ids !== undefined) {
    add('id IN (SELECT value FROM json_each(?))', JSON.stringify(ids.map(toStored)));
  }
  if (ids === undefined && found?.many !== false && isUndone(state)) add('state = ?', state);
  if (from !== undefined) {
    add(`${seq} >= ?`, firstSince(connection, from.getTime() - MAX_DISORDER_MS));
  }
  if (to !== undefined) add(`${seq} < ?`, firstSince(connection, to.getTime() + MAX_DISORDER_MS));
  if (order === 'newest') add(`${seq} < ?`, after ?? Number.MAX_SAFE_INTEGER);
  else add(`${seq} > ?`, after ?? 0);
  return { sql, values };
}

/**
 * Returns a number between the events that were received before a time and the others, as far as times of receipt are in
 * the order of numbers. Reads about as many events as the largest number has bits.
 */
function firstSince(connection: SqliteConnection, time: number): number {
  let low = 0;
  let high =
    1 +
    connection.get<{ seq: number }>(
      'SELECT coalesce(max(seq), 0) AS seq FROM payments_inbox_event',
    )!.seq;
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    const event = connection.get<{ seq: number; received_at: number }>(
      'SELECT seq, received_at FROM payments_inbox_event WHERE seq >= ? ORDER BY seq LIMIT 1',
      [middle],
    );
    if (event !== undefined && event.received_at < time) low = event.seq + 1;
    else high = middle;
  }
  return low;
}

/** The conditions on the row of an event and on its deliveries. */
function matchOf(
  { company, eventType, source, handler, state, from, to }: EventFilter,
  found: Found | null,
): Conditions {
  const sql: string[] = [];
  const values: unknown[] = [];
  const add = (clause: string, ...bound: unknown[]) => {
    sql.push(clause);
    values.push(...bound);
  };
  if (company !== undefined) add('e.company = ?', company);
  if (eventType !== undefined) add('e.event_type = ?', toStored(eventType));
  if (source !== undefined) add('e.source = ?', SOURCE[source]);
  if (from !== undefined) add('e.received_at >= ?', from.getTime());
  if (to !== undefined) add('e.received_at < ?', to.getTime());
  if (found?.many === true) {
    const searched = isFound(found.text);
    add(`(${searched.sql})`, ...searched.values);
  }
  if (isUndelivered(state)) add('e.undelivered = ?', UNDELIVERED[state]);
  const delivered: string[] = ['event_seq = e.seq'];
  const bound: unknown[] = [];
  if (handler !== undefined) {
    delivered.push('handler = ?');
    bound.push(handler);
  }
  if (state !== undefined && !isUndelivered(state)) {
    delivered.push('state = ?');
    bound.push(state);
  }
  if (bound.length > 0) {
    add(
      `EXISTS (SELECT 1 FROM payments_inbox_delivery WHERE ${delivered.join(' AND ')})`,
      ...bound,
    );
  }
  return { sql, values };
}

/** The event of that id, with its body and all histories. */
export function find(
  connection: SqliteConnection,
  { company, id }: { readonly company: string; readonly id: string },
  times: Times,
): StoredEventMessage | undefined {
  const row = connection.get<EventRow & EventBody>(
    `SELECT ${EVENT_COLUMNS}, b.raw, b.headers FROM payments_inbox_event e
     LEFT JOIN payments_inbox_body b ON b.event_seq = e.seq WHERE e.id = ? AND e.company = ?`,
    [toStored(id), company],
  );
  return row && describe(connection, row, row, times);
}
