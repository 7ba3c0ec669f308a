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
}

/** Collects the parameters of a statement. */
export class ParameterList {
  readonly values: SqlValue[] = [];

  /** Adds a value; returns its placeholder with a cast to a type of PostgreSQL. */
  add(value: SqlValue, type: string): string {
    this.values.push(value);
    return `$${this.values.length}::${type}`;
  }
}
