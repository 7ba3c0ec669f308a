import type { FailureCount } from '../../../inbox/store/inbox-store.js';
import type { SqliteConnection } from '../thread/connection.js';
import { COUNTS_ONCE, HAS_FAILED, NOT_ONCE } from './schema.js';
import { fromStored, toStored } from './stored-rows.js';

/** How many failed deliveries, or events that a search finds, one call reads: a few milliseconds of work. */
export const SLICE = 2000;

/** What a search found. */
export interface Found {
  /** Numbers of events, as JSON. Empty if {@link many} is set. */
  readonly seqs: string;
  /** There are more than 2,000 such events, so the list reads events in its order and compares each. */
  readonly many: boolean;
  readonly text: string;
}

/** Finds the events whose id or reference begins with a text, or whose transaction it is. */
export function eventsFound(
  connection: SqliteConnection,
  { text }: { readonly text: string },
): Found {
  const seqs = conditionsOf(text).flatMap(({ index, sql, values }) =>
    connection.all<{ seq: number }>(
      `SELECT seq FROM payments_inbox_event e INDEXED BY payments_inbox_event_${index}
       WHERE ${sql} LIMIT ${SLICE + 1}`,
      values,
    ),
  );
  const many = seqs.length > SLICE;
  return { seqs: JSON.stringify(many ? [] : seqs.map(({ seq }) => seq)), many, text };
}

/** SQL: whether a search finds an event `e`, with the values of its placeholders. */
export function isFound(text: string): { readonly sql: string; readonly values: string[] } {
  const parts = conditionsOf(text);
  return {
    sql: parts.map(({ sql }) => `(${sql})`).join(' OR '),
    values: parts.flatMap(({ values }) => values),
  };
}

function conditionsOf(text: string): { index: string; sql: string; values: string[] }[] {
  const range = [...prefixRange(text)];
  return [
    { index: 'id', sql: 'e.id >= ? AND e.id < ?', values: range },
    { index: 'reference', sql: 'e.reference >= ? AND e.reference < ?', values: range },
    { index: 'once', sql: `e.ordering_key = ? AND ${COUNTS_ONCE}`, values: [toStored(text)] },
    { index: 'transaction', sql: `e.ordering_key = ? AND ${NOT_ONCE}`, values: [toStored(text)] },
  ];
}

/** The first stored text that begins with `text`, and a text after all of them. */
export function prefixRange(text: string): readonly [begin: string, end: string] {
  const begin = toStored(text);
  return [begin, `${begin}\u{10FFFF}`];
}

/** The position of the last delivery of a slice. */
export interface Position {
  readonly seq: number;
  readonly handler: string;
}

/** SQL: the failed deliveries before a position, those of the newest events first. */
const FAILED_BEFORE = `FROM payments_inbox_delivery INDEXED BY payments_inbox_delivery_error
  WHERE ${HAS_FAILED} AND event_seq <= ?1 AND (event_seq, handler) < (?1, ?2)
  ORDER BY event_seq DESC, handler DESC LIMIT ${SLICE}`;

function valuesOf(before: Position | null): unknown[] {
  return before === null ? [Number.MAX_SAFE_INTEGER, ''] : [before.seq, before.handler];
}

function nextOf(rows: readonly Position[]): Position | null {
  const last = rows.at(-1);
  return last === undefined || rows.length < SLICE
    ? null
    : { seq: last.seq, handler: last.handler };
}

interface FailureRow extends Position {
  readonly dead: 0 | 1;
  readonly error: string;
  readonly failed_at: number;
}

/** One slice of `InboxStore.failures`, as the thread sends it. */
export interface FailuresSlice {
  readonly counts: readonly (Omit<FailureCount, 'oldestAt' | 'newestAt'> & {
    readonly oldestAt: number;
    readonly newestAt: number;
  })[];
  readonly next: Position | null;
}

/** Counts the failed deliveries of one slice by handler, state and error, from `next` of the previous slice on. */
export function failuresSlice(
  connection: SqliteConnection,
  { before }: { readonly before: Position | null },
): FailuresSlice {
  const rows = connection.all<FailureRow>(
    `SELECT event_seq AS seq, handler, state = 'dead' AS dead, last_error AS error, failed_at ${FAILED_BEFORE}`,
    valuesOf(before),
  );
  const groups = Map.groupBy(rows, ({ handler, dead, error }) =>
    JSON.stringify([handler, dead, error]),
  );
  const counts = [...groups.values()].map((all) => {
    const { seq, handler, dead, error } = all[0]!;
    const { company, id } = connection.get<{ company: string; id: string }>(
      'SELECT company, id FROM payments_inbox_event WHERE seq = ?',
      [seq],
    )!;
    const times = all.map(({ failed_at }) => failed_at);
    return {
      handler,
      error,
      state: dead === 1 ? ('dead' as const) : ('retrying' as const),
      count: all.length,
      oldestAt: Math.min(...times),
      newestAt: Math.max(...times),
      company,
      eventId: fromStored(id),
    };
  });
  return { counts, next: nextOf(rows) };
}
