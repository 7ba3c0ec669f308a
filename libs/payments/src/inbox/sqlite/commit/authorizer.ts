import type { DriverDatabase } from '../thread/driver.js';

// https://www.sqlite.org/c3ref/c_alter_table.html
const PRAGMA = 19;
const TRANSACTION = 22;
const ATTACH = 24;
const DETACH = 25;

const [OK, DENY] = [0, 1];

/** Pragmas that would change how safe the later commits of the connection are, how long they block, or prevent them. */
export const UNSAFE_PRAGMAS: ReadonlySet<string> = new Set([
  'busy_timeout',
  'checkpoint_fullfsync',
  'foreign_keys',
  'fullfsync',
  'ignore_check_constraints',
  'journal_mode',
  'locking_mode',
  'query_only',
  'recursive_triggers',
  'synchronous',
  'wal_autocheckpoint',
  'wal_checkpoint',
  'writable_schema',
]);

/**
 * Makes SQLite deny, in statements of the application, what would end its transaction or change the connection,
 * wherever it is in a script. `lent` tells whether the application has the connection. On a Node without
 * `setAuthorizer`, the savepoint of the commit finds out afterwards.
 */
export function protect(database: DriverDatabase, lent: () => boolean): void {
  database.setAuthorizer?.((action, first) => {
    if (!lent()) return OK;
    const denied =
      action === TRANSACTION ||
      action === ATTACH ||
      action === DETACH ||
      (action === PRAGMA && UNSAFE_PRAGMAS.has(String(first).toLowerCase()));
    return denied ? DENY : OK;
  });
}
