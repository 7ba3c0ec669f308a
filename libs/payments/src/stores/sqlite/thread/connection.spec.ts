import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { isBusy, loadDriver, retryWhileBusy } from './connection.js';
import type { SqliteConnection } from './connection.js';
import { openCommitter, openWriter } from './database-file.js';

let folder: string;
let writer: SqliteConnection;
let committer: SqliteConnection;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'payments-inbox-'));
  const driver = await loadDriver();
  writer = openWriter(driver, join(folder, 'inbox.db'), 100);
  committer = openCommitter(driver, join(folder, 'inbox.db'));
});
afterEach(() => {
  committer.close();
  writer.close();
  rmSync(folder, { recursive: true, force: true });
});

const pragma = (connection: SqliteConnection, name: string) =>
  Object.values(connection.get(`PRAGMA ${name}`)!)[0];

describe('SqliteConnection', () => {
  it('IN-09 SqliteConnection syncs every commit of the thread, and no commit of the event loop', () => {
    expect(pragma(writer, 'journal_mode')).toBe('wal');
    expect(pragma(committer, 'journal_mode')).toBe('wal');
    const [NORMAL, FULL] = [1, 2];
    expect(pragma(writer, 'synchronous')).toBe(FULL);
    expect(pragma(committer, 'synchronous')).toBe(NORMAL);
    expect(pragma(committer, 'wal_autocheckpoint')).toBe(0);
    expect(pragma(committer, 'busy_timeout')).toBe(0);
    expect([pragma(writer, 'foreign_keys'), pragma(committer, 'foreign_keys')]).toEqual([1, 1]);
  });

  it('SqliteConnection binds numbered parameters by their numbers, even if a number occurs twice', () => {
    expect(writer.get('SELECT ?2 AS b, ?1 AS a, ?2 AS again', [1, 2])).toEqual({
      b: 2,
      a: 1,
      again: 2,
    });
    expect(writer.get('SELECT ? AS a, ? AS b', [1, 2])).toEqual({ a: 1, b: 2 });
  });

  it('SqliteConnection retries an action while the file is locked, for at most the given time', () => {
    writer.run('BEGIN IMMEDIATE');
    let tries = 0;
    const attempt = () => {
      tries += 1;
      committer.run('BEGIN IMMEDIATE');
    };
    let thrown: unknown;
    try {
      retryWhileBusy(30, attempt);
    } catch (error) {
      thrown = error;
    }
    expect(isBusy(thrown)).toBe(true);
    expect(tries).toBeGreaterThan(1);
    writer.rollback();
    retryWhileBusy(30, attempt);
    committer.rollback();
  });

  it('SqliteConnection does not retry an action after an error that is not caused by a lock', () => {
    let tries = 0;
    const attempt = () => {
      tries += 1;
      writer.run('SELECT * FROM nowhere');
    };
    expect(() => retryWhileBusy(1000, attempt)).toThrow('no such table');
    expect(tries).toBe(1);
  });
});
