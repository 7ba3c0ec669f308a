import { hash } from 'node:crypto';
import { MAX_READ } from '../../inbox/store/stored-event.js';

/**
 * A value of a parameter, or of a column in a row. A time is a number of milliseconds since the epoch. In a row, a
 * boolean of SQLite is 0 or 1. An array can only be a parameter; see {@link SqlDialect.isOneOf}.
 */
export type SqlValue = string | number | boolean | null | Uint8Array | readonly (string | number)[];

/**
 * Runs statements that both databases accept. A statement has the placeholders `$1`, `$2`, …. If the type of a
 * placeholder is not clear from the statement, the placeholder has a cast of PostgreSQL, such as `$1::bigint`. SQLite
 * runs the statement without the casts.
 */
export interface SqlConnection {
  readonly dialect: SqlDialect;
  // oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- the SQL defines the columns of a row
  all<Row>(sql: string, parameters?: readonly SqlValue[]): Promise<Row[]>;
  // oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- the SQL defines the columns of a row
  get<Row>(sql: string, parameters?: readonly SqlValue[]): Promise<Row | undefined>;
  /** Runs a statement; returns how many rows it changed. */
  run(sql: string, parameters?: readonly SqlValue[]): Promise<number>;
}

/** A connection on which each statement is a transaction of its own. */
export interface SqlDatabase extends SqlConnection {
  /** Runs `work` in one transaction. After a conflict, `work` may run again in a new transaction. */
  transaction<T>(work: (connection: SqlConnection) => Promise<T>): Promise<T>;
  changeCatalog(change: CatalogChange, values: readonly SqlValue[]): Promise<void>;
}

/**
 * Statements that run one after the other. Until they end, no other transaction changes workers or the catalog, or
 * receives events. In PostgreSQL, the statements are the body of a function with this name, because a process that
 * stopped between two separate statements would stop all receives.
 */
export interface CatalogChange {
  readonly name: string;
  /** The types of the parameters in PostgreSQL. */
  readonly types: readonly string[];
  readonly statements: (dialect: SqlDialect) => readonly string[];
}

/** The SQL that differs between the two databases. */
export interface SqlDialect {
  /** The name of a table in a statement. */
  table(name: string): string;
  /**
   * SQL for the current time in milliseconds, by the store clock (due times, leases) or by the wall clock (times that
   * people read). On PostgreSQL both are the time of the server.
   */
  now(clock: 'store' | 'wall'): string;
  /** SQL: whether a column has one of the values of a parameter, which is an array: `isOneOf('e.id', '$1::text[]')`. */
  isOneOf(column: string, parameter: string): string;
  /** SQL for the bytes of a column as hexadecimal text. */
  hex(column: string): string;
  /**
   * SQL that follows the name of a table and names the index to read. Empty for PostgreSQL, which chooses the index
   * itself.
   */
  index(name: string): string;
  /** SQL for the part of a text that its index contains, because an index entry of PostgreSQL has a limited size. */
  indexed(text: string): string;
  /** SQL for the elements of a JSON array as the column `j.value`, or with another alias. */
  elements(array: string, alias?: string): string;
  /** SQL for a JSON array of the values of a group, without NULL. Without values, the result is NULL or empty. */
  jsonArray(value: string): string;
  /**
   * SQL at the end of a `SELECT` that makes the `SELECT` lock the selected rows of a table, and skip the rows that are
   * already locked.
   */
  skipLocked(alias: string): string;
  /**
   * SQL for a condition that is always true. On PostgreSQL, `durably` makes the commit of the transaction wait for the
   * disk, for any settings of the database; `lazily` makes the commit not wait.
   */
  commits(how: 'durably' | 'lazily'): string;
  /** Milliseconds to add to a time of the store clock to get a time of the wall clock. */
  readonly wallOffsetMs: number;
  readonly layout: StoreLayout;
}

/** The parts of the table layout that differ between the two databases. */
export interface StoreLayout {
  /** SQL: the events, with the columns `raw` and `headers`. */
  readonly bodies: string;
  /** SQL: whether an event `e` is a tombstone. */
  readonly pruned: string;
  /** SQL: sets the columns of an event that becomes a tombstone. */
  readonly tombstone: string;
  /** The tables that have a row for each event with a body. The column `event` contains the number of the event. */
  readonly bodyTables: readonly string[];
  /**
   * The kinds of pending and dead deliveries. Each kind has an index that begins with the handler.
   */
  readonly queues: readonly {
    readonly state: 'pending' | 'dead';
    readonly index: string;
    /** SQL: whether a delivery `d` is of this kind. */
    readonly condition: string;
    /** SQL: whether a delivery `d` is in the index. Default: {@link condition}. */
    readonly indexed?: string;
  }[];
}

/**
 * Maximum number of rows that one statement reads for a list or a count. To read this many rows takes a few
 * milliseconds.
 */
export const SLICE = 2000;

/** The longest delay that is stored: 100 years, in milliseconds. */
export const MAX_DELAY_MS = 3_155_760_000_000;

/** Collects the parameters of a statement. */
export class ParameterList {
  readonly values: SqlValue[] = [];

  /** Adds a value; returns its placeholder with a cast to a type of PostgreSQL. */
  add(value: SqlValue, type: string): string {
    this.values.push(value);
    return `$${this.values.length}::${type}`;
  }
}

/**
 * A condition of a list on a row. A condition has three parts: the index that finds the matching rows ('' for the
 * primary key, `null` if there is no index), SQL with a `?` for each value, and the values.
 */
export type Condition = readonly [index: string | null, sql: string, ...values: SqlValue[]];

export function whereAll(conditions: readonly Condition[], list: ParameterList): string {
  const texts = conditions.map(([, sql, ...values]) =>
    sql.replaceAll('?', () => `$${list.values.push(values.shift()!)}`),
  );
  return ['true', ...texts].join(' AND ');
}

/**
 * SQL: whether an event is the one event that the inbox handles for its transaction and type. Only such events are in the
 * index `event_once`. A statement must repeat the condition of the partial index that it reads.
 *
 * @param event the alias of the table of the event with a dot, or an empty text
 */
export const countsOnce = (event: string): string => `${event}once AND NOT ${event}stale`;

/**
 * SQL: whether an event is in the index `event_transaction`: the event has a transaction, and is not in the index
 * `event_once`.
 */
export const notOnce = (event: string): string =>
  `${event}ordering_key IS NOT NULL AND (NOT ${event}once OR ${event}stale)`;

/**
 * Reads a page of a list in slices, so that no statement takes long and other operations can run between two slices.
 *
 * @param slice reads the rows after a row. In its result, `next` is the row after which the next slice starts: the last
 *   row that this slice compared with the filter, or `null` if no rows are left
 */
export async function readPage<Row extends At, At extends { readonly seq: number }>(
  limit: number,
  after: At | null,
  slice: (after: At | null, limit: number) => Promise<{ rows: Row[]; next: At | null }>,
  pause: () => Promise<void>,
): Promise<{ rows: Row[]; next: At | null }> {
  // Rows by number, because a slice may repeat rows of the previous slice if rows were stored between the two slices.
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

/** The private-use character that marks an escaped character. In a text, this character is escaped too. */
const ESCAPE = '\uE000';
// oxlint-disable-next-line no-control-regex
const UNSTORABLE = /[\0\uE000]|\p{Surrogate}/gu;
const ESCAPED = /\uE000([0-9a-f]{4})/g;

/** Text that is stored unchanged. Nearly every id is such a text. */
const PLAIN = /^[\x20-\x7e]*$/;

/**
 * Escapes the characters of a text that a database cannot store. PostgreSQL cannot store U+0000 or a lone surrogate,
 * and some programs read a text of SQLite only up to the first U+0000. A text from JSON may contain these characters.
 * {@link fromStored} returns exactly the original text, and different texts stay different.
 */
export function toStored(text: string): string {
  if (PLAIN.test(text)) return text;
  return text.replace(
    UNSTORABLE,
    (character) => ESCAPE + character.charCodeAt(0).toString(16).padStart(4, '0'),
  );
}

export function fromStored(text: string): string {
  if (!text.includes(ESCAPE)) return text;
  return text.replace(ESCAPED, (_match, code: string) => String.fromCharCode(parseInt(code, 16)));
}

/**
 * Returns the hash of a company and a stored ordering key. Deliveries of one handler with the same hash never run at
 * the same time. The hash has 16 bytes and is much shorter than most keys, so its indexes have far fewer pages. Two
 * keys have the same hash by chance only once in 2^128. A line break separates the company and the key, because the id
 * of a company never contains one.
 */
export function orderingOf(company: string, orderingKey: string | null): Buffer | null {
  if (orderingKey === null) return null;
  return hash('sha256', `${company}\n${orderingKey}`, 'buffer').subarray(0, 16);
}

/**
 * A character that sorts after every other character. The texts between `prefix` and `prefix + LAST` begin with
 * `prefix`.
 */
export const LAST = '\u{10FFFF}';
