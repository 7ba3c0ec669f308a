import { PaymentsError } from '../../errors/payments-error.js';
import { version1 } from './migrations/0001.js';
import { retryWhileBusy } from './thread/connection.js';
import type { SqliteConnection } from './thread/connection.js';

/** Each text changes the tables from one version to the next. Released texts never change. */
export const MIGRATIONS: readonly string[] = [version1];

/**
 * Migrates the tables to the newest version that this code supports. Any number of processes may migrate at the same
 * time; only the first changes the tables. A process of the previous version that has opened the file continues to use
 * it.
 *
 * @throws PaymentsError `inbox_unavailable` if a newer version of nestjs-payments made the tables.
 */
export function migrate(
  connection: SqliteConnection,
  busyTimeoutMs: number,
  migrations = MIGRATIONS,
): void {
  retryWhileBusy(busyTimeoutMs, () => connection.run('BEGIN IMMEDIATE'));
  try {
    const version = versionOf(connection, migrations.length);
    for (const text of migrations.slice(version)) connection.exec(text);
    if (version < migrations.length) {
      connection.run('UPDATE payments_inbox_meta SET version = ?', [migrations.length]);
    }
    connection.run('COMMIT');
  } catch (error) {
    connection.rollback();
    throw error;
  }
}

/** Returns the version of the tables; 0 if the file has no tables of the inbox. */
function versionOf(connection: SqliteConnection, known: number): number {
  const select = "SELECT name FROM sqlite_schema WHERE name = 'payments_inbox_meta'";
  if (connection.get(select) === undefined) return 0;
  const { version } = connection.get<{ version: number }>(
    'SELECT version FROM payments_inbox_meta',
  )!;
  if (version <= known) return version;
  throw new PaymentsError(
    'inbox_unavailable',
    `The SQLite file has inbox tables of version ${version}, made by a newer nestjs-payments; the installed package ` +
      `supports versions up to ${known}. Install the newer nestjs-payments again, or set another "file" of sqliteInbox.`,
  );
}
