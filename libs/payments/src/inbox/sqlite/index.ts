export type { SqliteParameter, SqliteStatement, SqliteTransaction } from './commit/transaction.js';
export { sqliteInbox } from './sqlite-inbox.js';
export type { SqliteInboxOptions } from './sqlite-options.js';
export type { SqliteRow, SqliteValue } from './thread/driver.js';
