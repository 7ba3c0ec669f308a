import type { FailureCount } from '../../store/inbox-store.js';
import type { SqliteConnection } from '../thread/connection.js';
import { HAS_FAILED } from './schema.js';
import { fromStored, toReadable, toStored } from './stored-rows.js';

/** How many failed deliveries, or events that begin with a text, one call reads: a few milliseconds of work. */
export const SLICE = 2000;
/** The searched columns that are compared with the start of a text, and their indexes. */
const COLUMNS = [
  ['id', 'id'],
  ['ordering_key', 'transaction'],
  ['reference', 'reference'],
] as const;

/** What a search found. */
export interface Found {
  /** Numbers of events, as JSON. If {@link many} is set, only those of events with a failed delivery. */
  readonly seqs: string;
  /** More than 2,000 events begin with the text, so the list reads events in its order and compares each. */
  readonly many: boolean;
  readonly text: string;
}

/** Numbers of the events whose id, transaction or reference begins with a text. */
export function eventsBeginning(
  connection: SqliteConnection,
  { text }: { readonly text: string },
): Pick<Found, 'many'> & { readonly seqs: readonly number[] } {
  const seqs = COLUMNS.flatMap(([column, index]) =>
    connection.all<{ seq: number }>(
      `SELECT seq FROM payments_inbox_event INDEXED BY payments_inbox_event_${index}
       WHERE ${column} >= ? AND ${column} < ? LIMIT ${SLICE + 1}`,
      [...prefixRange(text)],
    ),
  ).map(({ seq }) => seq);
  const many = seqs.length > SLICE;
  return { seqs: many ? [] : seqs, many };
}

/** The same comparison for the row of an event `e`, with the values of its placeholders. */
export function beginsWith(text: string): { readonly sql: string; readonly values: string[] } {
  const range = prefixRange(text);
  const parts = COLUMNS.map(([column]) => `(e.${column} >= ? AND e.${column} < ?)`);
  return { sql: parts.join(' OR '), values: COLUMNS.flatMap(() => range) };
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

export interface FailedRequest {
  readonly text: string;
  /** `next` of the previous slice; `null` for the first. */
  readonly before: Position | null;
}

export interface FailedSlice {
  /** Numbers of the events. */
  readonly seqs: readonly number[];
  /** `null` after the last slice. */
  readonly next: Position | null;
}

/** The events of one slice with a failed delivery whose error contains a text. */
export function failedSlice(
  connection: SqliteConnection,
  { text, before }: FailedRequest,
): FailedSlice {
  const found = 'instr(lower(last_error), lower(?3)) > 0 AS found';
  const rows = connection.all<Position & { found: 0 | 1 }>(
    `SELECT event_seq AS seq, handler, ${found} ${FAILED_BEFORE}`,
    [...valuesOf(before), toReadable(text)],
  );
  return { seqs: rows.filter((row) => row.found === 1).map(({ seq }) => seq), next: nextOf(rows) };
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

/** Counts the failed deliveries of one slice by handler, state and error. */
export function failuresSlice(
  connection: SqliteConnection,
  { before }: Pick<FailedRequest, 'before'>,
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
