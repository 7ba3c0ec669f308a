import type { InboxDefinition } from '../store/inbox-store.js';
import { resolvePostgresOptions } from './postgres-options.js';
import type { PostgresInboxOptions } from './postgres-options.js';
import { PostgresStore } from './postgres-store.js';

/**
 * Stores events in PostgreSQL 13 or later, in a schema of its own. It is durable and shared by any number of processes,
 * and uses the clock of the database. It needs the `pg` package: `npm install pg`.
 *
 * `context.commit(work)` runs `work` and settles the delivery in one transaction. Its `tx` is the `pg` client;
 * with `runTransaction` it is the transaction of the application's ORM or query builder. Keep it short, because it uses a
 * connection: do slow work before it.
 *
 * Behind a pooler that gives every transaction another connection (PgBouncer), pass a `pool`: such a pooler rejects the
 * timeouts that the inbox's own connections set. Nothing is prepared on a `pool` unless `preparedStatements` is set.
 * Notifications do not pass such a pooler, so processes find each other's work by polling. Everything else is the same.
 *
 * @example
 * ```ts
 * PaymentsModule.forRoot({
 *   // …
 *   inbox: postgresInbox({ connectionString: process.env.DATABASE_URL }),
 * })
 * ```
 *
 * @throws PaymentsError `options_invalid`.
 */
export function postgresInbox(options: PostgresInboxOptions): InboxDefinition {
  const resolved = resolvePostgresOptions(options);
  return { name: 'postgres', create: (runtime) => new PostgresStore(resolved, runtime) };
}
