import type { InboxDefinition } from '../inbox-store.js';
import { resolvePostgresOptions } from './postgres-options.js';
import type { PostgresInboxOptions } from './postgres-options.js';
import { PostgresStore } from './postgres-store.js';

/**
 * Keeps events in PostgreSQL 13 or later, in a schema of their own: durable, for any number of instances, with
 * leases by the database's clock. It needs the `pg` package: `npm install pg`.
 *
 * `context.commit(work)` runs `work` and settles the delivery in one transaction. Its `tx` is the `pg` client;
 * with `runTransaction` it is the transaction of the application's ORM or query builder. It is short: do the
 * slow work first and commit last.
 *
 * Behind a pooler that gives every transaction another connection (PgBouncer), hand in a `pool`: it refuses the
 * time-outs that the inbox's own connections ask the server for. Nothing is prepared on it unless `preparedStatements`
 * says so. Notifications don't arrive there and instances find each other's work by polling; everything else
 * holds.
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
