export { PostgresInboxError } from './connection/database-failure.js';
export { postgresInbox } from './postgres-inbox.js';
export type { PostgresInboxOptions } from './postgres-options.js';
export type { OpenTransaction, PostgresTransaction, RunTransaction } from './transaction-runner.js';
