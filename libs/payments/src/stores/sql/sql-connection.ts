import { hash } from 'node:crypto';
import { MAX_READ } from '../../inbox/store/stored-event.js';

/**
 * A value of a parameter, or of a column in a row. A time is a number of milliseconds since the epoch. In a row, a boolean of
 * SQLite is 0 or 1. An array is only a parameter; see {@link SqlDialect.isOneOf}.
 */
export type SqlValue = string | number | boolean | null | Uint8Array | readonly (string | number)[];

/**
 * Runs statements that both databases understand. A statement has the placeholders `$1`, `$2`, …, each with a cast of
 * PostgreSQL if its type is not clear from the statement, such as `$1::bigint`. SQLite runs it without the casts.
 */
export interface SqlConnection {
  readonly dialect: SqlDialect;
  /** Returns all rows. */
  // oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- the SQL defines the columns of a row
  all<Row>(sql: string, parameters?: readonly SqlValue[]): Promise<Row[]>;
  /** Returns the first row. */
  // oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- the SQL defines the columns of a row
  get<Row>(sql: string, parameters?: readonly SqlValue[]): Promise<Row | undefined>;
  /** Runs a statement; returns how many rows it changed. */
  run(sql: string, parameters?: readonly SqlValue[]): Promise<number>;
}

/** A connection on which each statement is a transaction of its own. */
export interface SqlDatabase extends SqlConnection {
  /** Runs statements in one transaction. It may be repeated from its start after a conflict. */
  transaction<T>(work: (connection: SqlConnection) => Promise<T>): Promise<T>;
  /** Changes workers or the catalog, in one transaction. */
  changeCatalog(change: CatalogChange, values: readonly SqlValue[]): Promise<void>;
}

/**
 * Statements that run one after the other while no other transaction changes workers or the catalog, and none receives events.
 * In PostgreSQL, they are the body of a function of this name: a process that was stopped between two statements would stop
 * all receives.
 */
export interface CatalogChange {
  readonly name: string;
  /** The types of the parameters in PostgreSQL. */
  readonly types: readonly string[];
  /** The statements, whose first parameters are those of the change. */
  readonly statements: (dialect: SqlDialect, list: ParameterList) => readonly string[];
}

/** What the databases write differently. */
export interface SqlDialect {
  /** The name of a table in a statement. */
  table(name: string): string;
  /**
   * SQL for the current time in milliseconds, by the store clock (due times, leases) or by the wall clock (what people read).
   * On PostgreSQL both are the time of the server.
   */
  now(clock: 'store' | 'wall', parameters: ParameterList): string;
  /** SQL: whether a column has one of the values of a parameter, which is an array: `isOneOf('e.id', '$1::text[]')`. */
  isOneOf(column: string, parameter: string): string;
  /** SQL for the bytes of a column as hexadecimal text. */
  hex(column: string): string;
  /** SQL after a table: reads it by that index. PostgreSQL chooses the index itself. */
  index(name: string): string;
  /** SQL for the part of a text that its index has: on PostgreSQL, an index entry has a limited size. */
  indexed(text: string): string;
  /** SQL for the elements of a JSON array as the column `j.value`, or with another alias. */
  elements(array: string, alias?: string): string;
  /** SQL for a JSON array of the values of a group that are not NULL; NULL or an empty array if there are none. */
  jsonArray(value: string): string;
  /** SQL after a `SELECT`: locks its rows of a table, without those that another transaction has locked. */
  skipLocked(alias: string): string;
  /**
   * SQL that is always true. On PostgreSQL, the commit of its transaction waits for the disk (`durably`), whatever the
   * settings of the database, or does not (`lazily`).
   */
  commits(how: 'durably' | 'lazily'): string;
  /** What to add to a time by the store clock, so that people can read it: 0 if the store clock is a wall clock. */
  readonly wallOffsetMs: number;
  readonly layout: StoreLayout;
}

/** What the tables of the databases have in different columns. */
export interface StoreLayout {
  /** SQL: the events, with the columns `raw` and `headers`. */
  readonly bodies: string;
  /** SQL: whether an event `e` is a tombstone. */
  readonly pruned: string;
  /** SQL: sets the columns of an event that becomes a tombstone. */
  readonly tombstone: string;
  /** The tables that have a row for each event with a body, in the column `event`. */
  readonly bodyTables: readonly string[];
  /**
   * The pending and dead deliveries, each kind with an index that begins with the handler. The first are those that wait for
   * their turn. They are skipped first, so that each delivery that still waits has the delivery that it waits for.
   */
  readonly queues: readonly {
    readonly state: 'pending' | 'dead';
    readonly index: string;
    /** SQL: whether a delivery `d` is of this kind. */
    readonly condition: string;
    /** SQL: whether a delivery `d` is in the index. Default: {@link condition}. */
    readonly indexed?: string;
  }[];
  /** SQL: sets the columns of a delivery that is not pending or dead any more. */
  readonly unqueued: string;
}

/** How many rows one statement of a list or a count reads: a few milliseconds of work. */
export const SLICE = 2000;

/** The longest delay that is stored: 100 years, in milliseconds. */
export const MAX_DELAY_MS = 3_155_760_000_000;

/** Collects the parameters of a statement. */
export class ParameterList {
  readonly values: SqlValue[];

  /** @param values the first values, for `$1` and the following placeholders. */
  constructor(values: readonly SqlValue[] = []) {
    this.values = [...values];
  }

  /** Adds a value; returns its placeholder with a cast to a type of PostgreSQL. */
  add(value: SqlValue, type: string): string {
    this.values.push(value);
    return `$${this.values.length}::${type}`;
  }
}

/**
 * A condition of a list on a row: the index whose entries are the rows that match ('' for the primary key, `null` if there is
 * none), SQL with a `?` for each value, and the values.
 */
export type Condition = readonly [index: string | null, sql: string, ...values: SqlValue[]];

/** SQL: whether all conditions hold. */
export function whereAll(conditions: readonly Condition[], list: ParameterList): string {
  const texts = conditions.map(([, sql, ...values]) =>
    sql.replaceAll('?', () => `$${list.values.push(values.shift()!)}`),
  );
  return ['true', ...texts].join(' AND ');
}

/**
 * SQL: whether an event counts as the only one of its transaction and type. Its transaction is then in `event_once`. A statement
 * repeats the condition of the partial index that it reads.
 *
 * @param event the alias of its table with a dot, or nothing
 */
export const countsOnce = (event: string): string => `${event}once AND NOT ${event}stale`;

/** SQL: whether the transaction of an event is in `event_transaction`: it has one, and is not in `event_once`. */
export const notOnce = (event: string): string =>
  `${event}ordering_key IS NOT NULL AND (NOT ${event}once OR ${event}stale)`;

/**
 * Reads a page of a list in slices, so that no statement takes long, and other operations run between two slices.
 *
 * @param slice reads the next rows after a row; `next`: the last row that it compared with the filter, `null` at the end
 */
export async function readPage<Row extends At, At extends { readonly seq: number }>(
  limit: number,
  after: At | null,
  slice: (after: At | null, limit: number) => Promise<{ rows: Row[]; next: At | null }>,
  pause: () => Promise<void>,
): Promise<{ rows: Row[]; next: At | null }> {
  // By number: a slice may begin with rows of the slice before, if rows were stored between the two.
  const found = new Map<number, Row>();
  let next = after;
  for (let read = 0; read < MAX_READ; read += SLICE) {
    const part = await slice(next, limit + 1 - found.size);
    for (const row of part.rows) found.set(row.seq, row);
    next = part.next;
    if (next === null || found.size > limit) break;
    await pause();
  }
  const rows = [...found.values()];
  return { rows: rows.slice(0, limit), next: rows.length > limit ? rows[limit - 1]! : next };
}

/** Marks an escaped character. It is a private-use character, and is escaped itself. */
const ESCAPE = '\uE000';
// oxlint-disable-next-line no-control-regex
const UNSTORABLE = /[\0\uE000]|\p{Surrogate}/gu;
const ESCAPED = /\uE000([0-9a-f]{4})/g;

/** Text that is stored unchanged. Nearly every id is such a text. */
const PLAIN = /^[\x20-\x7e]*$/;

/**
 * A text as a database can store it. PostgreSQL cannot store U+0000 or a lone surrogate, some programs read SQLite's texts
 * only up to the first U+0000, and a text from JSON may have both. The function escapes them. {@link fromStored} returns
 * exactly the same text, and different texts stay different.
 */
export function toStored(text: string): string {
  if (PLAIN.test(text)) return text;
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

/**
 * The hash of a company and an ordering key, which is given as stored. Deliveries of one handler with the same hash never run
 * at the same time. With 16 bytes it is much shorter than most keys, so that its indexes have far fewer pages; two keys have
 * the same hash by chance only once in 2^128. A company has no line break.
 */
export function orderingOf(company: string, orderingKey: string | null): Buffer | null {
  if (orderingKey === null) return null;
  return hash('sha256', `${company}\n${orderingKey}`, 'buffer').subarray(0, 16);
}

/** Sorts after every character in a text, so that `prefix` to `prefix + LAST` are the texts that begin with a prefix. */
export const LAST = '\u{10FFFF}';
