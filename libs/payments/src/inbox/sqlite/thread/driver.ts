import { PaymentsError } from '../../../errors/payments-error.js';

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

/** SQLite's primary result code (https://www.sqlite.org/rescode.html); `undefined` for other errors. */
export function primaryCode(error: unknown): number | undefined {
  const code = (error as { errcode?: unknown } | null)?.errcode;
  return typeof code === 'number' ? code & 0xff : undefined;
}

/** The first SQLite without the WAL-reset bug. */
const SAFE_VERSION = '3.51.3';

/** The version of the SQLite library in use. */
export function sqliteVersion(driver: Driver): string {
  const database = new driver(':memory:');
  const { version } = database.prepare('SELECT sqlite_version() AS version').get() as {
    version: string;
  };
  database.close();
  return version;
}

/** Whether a SQLite of this version has the WAL-reset bug. */
export function isOldSqlite(version: string): boolean {
  const found = version.split('.').map(Number);
  for (const [index, safe] of SAFE_VERSION.split('.').map(Number).entries()) {
    const part = found[index] ?? 0;
    if (part !== safe) return part < safe;
  }
  return false;
}

/** Why an old SQLite is not used, and what to do. */
export function oldSqliteReason(version: string): string {
  return (
    `This Node has SQLite ${version}, which has the WAL-reset bug (https://www.sqlite.org/wal.html#walresetbug): ` +
    'if one connection makes a checkpoint while another restarts the write-ahead log, committed transactions can be ' +
    'lost and the file corrupted. It is rare, but the inbox has several connections. ' +
    `SQLite ${SAFE_VERSION} fixes it: run Node 24.15.0 or later, or 22.22.3 or later of the 22 line ` +
    '("node -p process.versions.sqlite" prints the version of a Node)'
  );
}

/** @throws PaymentsError `options_invalid` for a SQLite with the bug. */
export function refuseOldSqlite(version: string): void {
  if (!isOldSqlite(version)) return;
  throw new PaymentsError(
    'options_invalid',
    `PaymentsModule: ${oldSqliteReason(version)}. To start anyway, set "allowOldSqlite: true" of sqliteInbox().`,
  );
}
