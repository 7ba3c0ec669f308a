/**
 * The inbox in a SQLite file.
 *
 * @module nestjs-payments/sqlite
 */
export { sqliteInbox } from './sqlite-store.js';
export type { SqliteInboxOptions } from './sqlite-options.js';
export type { SqliteParameter, SqliteStatement, SqliteTransaction } from './sql/commit.js';
export type { SqliteRow, SqliteValue } from './thread/connection.js';
