import { describe, expect, it } from '@jest/globals';
import { resolve } from 'node:path';
import { sqliteInbox } from './sqlite-store.js';
import { resolveSqliteOptions } from './sqlite-options.js';
import type { SqliteInboxOptions } from './sqlite-options.js';

describe('the options of sqliteInbox', () => {
  it('the options of sqliteInbox have defaults for all fields except the file', () => {
    expect(resolveSqliteOptions({ file: 'inbox.db' })).toEqual({
      file: resolve('inbox.db'),
      allowOldSqlite: false,
      busyTimeoutMs: 5000,
      threadPath: undefined,
    });
    expect(sqliteInbox({ file: 'inbox.db' }).name).toBe('sqlite');
  });

  it.each([
    [{}, '"sqliteInbox.file" must be the path'],
    [{ file: ' ' }, 'Give the path of a file'],
    [{ file: 'file:inbox.db' }, 'is a URI'],
    [{ file: 'a', busyTimeoutMs: 99 }, 'milliseconds from 100 to 60000; it is 99'],
    [{ file: 'a', threadPath: '' }, '"sqliteInbox.threadPath" must be the path or file: URL'],
    [{ file: 'a', allowOldSqlite: 'yes' }, 'must be true or false'],
    [{ file: 'a', busyTimeout: 100 }, 'there is no option "sqliteInbox.busyTimeout"'],
  ])(
    'the options of sqliteInbox are rejected with the fix if a value is wrong: %j',
    (options, message) => {
      expect(() => sqliteInbox(options as SqliteInboxOptions)).toThrow(message);
    },
  );
});
