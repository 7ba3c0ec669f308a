/**
 * The inbox in a PostgreSQL database.
 *
 * @module nestjs-payments/postgres
 */
export { PostgresInboxError } from './connection/connection-source.js';
export { postgresInbox } from './postgres-inbox.js';
export type {
  OpenTransaction,
  PostgresInboxOptions,
  PostgresTransaction,
  RunTransaction,
} from './postgres-options.js';
