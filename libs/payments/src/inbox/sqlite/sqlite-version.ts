import { PaymentsError } from '../../payments.errors.js';
import type { SqliteConnection } from './thread/connection.js';

/** The first SQLite without the WAL-reset bug. */
const SAFE_VERSION = '3.51.3';

/** The version of the SQLite library in use. */
export function sqliteVersion(connection: SqliteConnection): string {
  return connection.get<{ version: string }>('SELECT sqlite_version() AS version')!.version;
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
    'if one connection makes a checkpoint while another starts the write-ahead log anew, committed transactions can be ' +
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
