import type { DriverDatabase } from '../thread/driver.js';

// https://www.sqlite.org/c3ref/c_alter_table.html
const PRAGMA = 19;
const TRANSACTION = 22;
const ATTACH = 24;
const DETACH = 25;

const [OK, DENY] = [0, 1];

/** Pragmas that would change how safe the connection's later commits are, or how long they block. */
const UNSAFE_PRAGMAS = new Set([
  'busy_timeout',
  'checkpoint_fullfsync',
  'fullfsync',
  'journal_mode',
  'locking_mode',
  'synchronous',
  'wal_autocheckpoint',
  'wal_checkpoint',
]);

/**
 * Has SQLite refuse, in statements of the application, what would end its transaction or change the
 * connection, in whatever part of a script it stands. `lent` tells whether the application has the
 * connection. Where Node has no `setAuthorizer` yet, the savepoint of the commit finds it out afterwards.
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
