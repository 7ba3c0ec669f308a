import { describe, expect, it } from '@jest/globals';
import { protect, UNSAFE_PRAGMAS } from './commit.js';
import type { DriverDatabase } from '../thread/connection.js';

// Return values and action codes of an SQLite authorizer: https://sqlite.org/c3ref/c_alter_table.html
const [OK, DENY] = [0, 1];
const [INSERT, PRAGMA, TRANSACTION, ATTACH, DETACH, SAVEPOINT] = [18, 19, 22, 24, 25, 32];

type Authorizer = Parameters<NonNullable<DriverDatabase['setAuthorizer']>>[0];

/** The authorizer that `protect` sets. */
function authorizer(inUse: boolean): Authorizer {
  let installed: Authorizer = () => -1;
  const setAuthorizer = (callback: Authorizer) => {
    installed = callback;
  };
  protect({ setAuthorizer } as unknown as DriverDatabase, () => inUse);
  return installed;
}

describe('the authorizer of a commit', () => {
  const inUse = authorizer(true);

  it.each([...UNSAFE_PRAGMAS])(
    'the authorizer of a commit denies the application PRAGMA %s, in upper and lower case',
    (pragma) => {
      expect(inUse(PRAGMA, pragma, 'OFF')).toBe(DENY);
      expect(inUse(PRAGMA, pragma.toUpperCase(), null)).toBe(DENY);
    },
  );

  it('the authorizer of a commit denies every pragma that changes durability, locks or checkpoints', () => {
    const needed = ['busy_timeout', 'fullfsync', 'journal_mode', 'locking_mode', 'query_only'];
    const more = ['synchronous', 'wal_autocheckpoint', 'wal_checkpoint', 'writable_schema'];
    for (const pragma of [...needed, 'checkpoint_fullfsync', 'ignore_check_constraints', ...more]) {
      expect(UNSAFE_PRAGMAS).toContain(pragma);
    }
  });

  it('the authorizer of a commit denies statements that end the transaction or attach a database', () => {
    for (const action of [TRANSACTION, ATTACH, DETACH]) expect(inUse(action, 'x', null)).toBe(DENY);
  });

  it('the authorizer of a commit allows inserts, savepoints and harmless pragmas of the application', () => {
    expect(inUse(PRAGMA, 'table_info', 'ledger')).toBe(OK);
    expect(inUse(PRAGMA, 'defer_foreign_keys', 'ON')).toBe(OK);
    expect(inUse(INSERT, 'ledger', null)).toBe(OK);
    expect(inUse(SAVEPOINT, 'BEGIN', 'mine')).toBe(OK);
  });

  it('the authorizer of a commit allows every statement of the inbox itself', () => {
    const own = authorizer(false);
    expect(own(TRANSACTION, 'COMMIT', null)).toBe(OK);
    expect(own(PRAGMA, 'wal_checkpoint', 'TRUNCATE')).toBe(OK);
  });

  it('the authorizer of a commit has no effect on a Node version without authorizers', () => {
    expect(() => protect({} as DriverDatabase, () => true)).not.toThrow();
  });
});
