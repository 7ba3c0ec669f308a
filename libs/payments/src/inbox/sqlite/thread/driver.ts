/** What SQLite stores: a number with a fraction is REAL, one without and a `bigint` are INTEGER. */
export type SqliteValue = null | number | bigint | string | Uint8Array;

/** A row, by column name. */
export type SqliteRow = Record<string, SqliteValue>;

/** The part of `node:sqlite`'s `StatementSync` that the inbox uses. */
export interface DriverStatement {
  run(...parameters: unknown[]): {
    readonly changes: number | bigint;
    readonly lastInsertRowid: number | bigint;
  };
  get(...parameters: unknown[]): unknown;
  all(...parameters: unknown[]): unknown[];
  setReadBigInts(enabled: boolean): void;
}

/** The part of `node:sqlite`'s database class that the inbox uses. */
export interface DriverDatabase {
  exec(sql: string): void;
  prepare(sql: string): DriverStatement;
  close(): void;
  /** Since Node 24.10. */
  setAuthorizer?(
    authorizer: (action: number, first: string | null, second: string | null) => number,
  ): void;
}

/** `node:sqlite`'s database class. */
export type Driver = new (file: string) => DriverDatabase;

/**
 * Loads `node:sqlite` when it is needed, not before: its import prints an ExperimentalWarning, which applications
 * with another inbox should not see.
 */
export async function loadDriver(): Promise<Driver> {
  return driverOf(await import('node:sqlite'));
}

/** The database class, under the name it has had since Node 22 or the one it is to have. */
export function driverOf(module: object): Driver {
  const { DatabaseSync, Database } = module as { DatabaseSync?: Driver; Database?: Driver };
  const driver = DatabaseSync ?? Database;
  if (driver === undefined) {
    throw new TypeError('node:sqlite has neither a DatabaseSync nor a Database class.');
  }
  return driver;
}
