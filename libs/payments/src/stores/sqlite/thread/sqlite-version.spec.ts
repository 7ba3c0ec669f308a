import { describe, expect, it } from '@jest/globals';
import { isOldSqlite, oldSqliteWarning } from './database-file.js';

describe('the version of SQLite', () => {
  it.each([
    ['3.47.2', true],
    ['3.51.2', true],
    ['3.51.3', false],
    ['3.51.10', false],
    ['3.53.4', false],
    ['4.0', false],
  ])('SQLite %s has the WAL-reset bug: %s', (version, old) => {
    expect(isOldSqlite(version)).toBe(old);
  });

  it('an old SQLite is rejected, and the error names the bug, the versions of Node without the bug, and the option', () => {
    expect(() => oldSqliteWarning('3.47.2', false)).toThrow(
      /3\.47\.2.*WAL-reset bug.*Node 24\.15\.0.*22\.22\.3.*process\.versions\.sqlite.*allowOldSqlite/,
    );
  });
});
