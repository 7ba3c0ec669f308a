import type { InboxDefinition } from '../store/inbox-store.js';
import { resolveSqliteOptions } from './sqlite-options.js';
import type { SqliteInboxOptions } from './sqlite-options.js';
import { SqliteStore } from './sqlite-store.js';

/**
 * Stores events in a SQLite file, through `node:sqlite`: durable against a crash and a power cut, for one machine,
 * without a server or a native dependency. Several processes of the machine may share the file. The database works in
 * a thread of its own, so that a slow disk never blocks the event loop, and operations that arrive together share one
 * transaction.
 *
 * `context.commit` gives the handler a {@link SqliteTransaction} on this file, for the application's own tables in it.
 *
 * The file is opened when the application boots. That fails with a PaymentsError: `options_invalid` on a SQLite with
 * the WAL-reset bug, `inbox_unavailable` if the file cannot be used.
 *
 * @throws PaymentsError `options_invalid`.
 *
 * @example
 * ```ts
 * PaymentsModule.forRoot({
 *   ...credentials,
 *   inbox: sqliteInbox({ file: 'payments-inbox.db' }),
 * });
 * ```
 */
export function sqliteInbox(options: SqliteInboxOptions): InboxDefinition {
  const settings = resolveSqliteOptions(options);
  return { name: 'sqlite', create: (runtime) => new SqliteStore(settings, runtime) };
}
