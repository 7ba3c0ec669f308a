import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { CapturedLog } from '../../support/log/captured-log.js';
import { incoming, SqliteHarness } from '../../support/sqlite/sqlite-harness.ts';

let harness: SqliteHarness;
beforeEach(() => {
  harness = new SqliteHarness();
});
afterEach(() => harness.dispose());

describe('failures of a SQLite inbox', () => {
  it('IN-08 receive() rejects in bounded time while the SQLite file is locked, and succeeds after the lock', async () => {
    const store = await harness.open({ busyTimeoutMs: 200 });
    const application = harness.connect();
    application.exec('BEGIN IMMEDIATE');
    const raw = Buffer.from('{"card":"4111111111111111"}');
    const rejection = await store.receive([incoming({ raw })]).catch((error: unknown) => error);
    expect(rejection).toMatchObject({
      code: 'inbox_unavailable',
      message: expect.stringMatching(/database is locked.*"busyTimeoutMs"/),
    });
    expect(String(rejection)).not.toContain('4111');
    // Reads do not wait for the lock of a writer.
    expect((await store.stats()).deliveries).toEqual([]);
    application.exec('ROLLBACK');
    expect(await store.receive([incoming({ raw })])).toMatchObject([{ outcome: 'stored' }]);
  });

  it('an invalid operation rejects, and the other operations of its batch succeed', async () => {
    const store = await harness.open();
    const twice = incoming({ handlers: ['book', 'book'] });
    const [good, bad, other] = await Promise.allSettled([
      store.receive([incoming()]),
      store.receive([incoming({ id: 'same-batch' }), twice]),
      store.receive([incoming()]),
    ]);
    expect([good.status, bad.status, other.status]).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect(await store.find('acme', 'same-batch')).toBeUndefined();
    expect((await store.stats()).deliveries).toMatchObject([{ state: 'pending', count: 2 }]);
  });

  it('an operation with an argument that cannot be sent to the thread rejects, and the other operations of the message succeed', async () => {
    const store = await harness.open();
    const handlers = [(() => {}) as never];
    const [odd, good] = await Promise.allSettled([
      store.receive([incoming({ handlers })]),
      store.receive([incoming()]),
    ]);
    expect([odd.status, good.status]).toEqual(['rejected', 'fulfilled']);
  });

  it('open() rejects if the folder of the SQLite file is missing', async () => {
    const store = harness.store({ file: join(harness.folder, 'none', 'inbox.db') });
    await expect(store.open()).rejects.toMatchObject({
      code: 'inbox_unavailable',
      message: expect.stringContaining('Its folder must exist'),
    });
  });

  it('open() rejects a file that is not a SQLite database, and does not change the file', async () => {
    writeFileSync(harness.file, 'a letter to the bank, long enough to be no empty file'.repeat(90));
    await expect(harness.store().open()).rejects.toMatchObject({
      code: 'inbox_unavailable',
      message: expect.stringContaining('file is not a database'),
    });
  });

  it('open() rejects a SQLite file with tables of another version', async () => {
    await (await harness.open()).close();
    harness.connect().exec('UPDATE payments_inbox_meta SET version = 99');
    await expect(harness.store().open()).rejects.toMatchObject({
      code: 'inbox_unavailable',
      message: expect.stringContaining('tables of version 99'),
    });
  });

  it('open() rejects a version of SQLite with the WAL-reset bug before it creates a file', async () => {
    const old = { allowOldSqlite: false, threadPath: harness.thread({ version: '3.51.2' }) };
    await expect(harness.store(old).open()).rejects.toMatchObject({
      code: 'options_invalid',
      message: expect.stringMatching(/SQLite 3\.51\.2.*WAL-reset bug/),
    });
    expect(existsSync(harness.file)).toBe(false);
  });

  it('open() accepts an old version of SQLite with a warning if "allowOldSqlite" is true', async () => {
    const log = new CapturedLog();
    Logger.overrideLogger(log);
    const store = await harness.open({ threadPath: harness.thread({ version: '3.50.0' }) });
    expect(log.matching(/3\.50\.0.*"allowOldSqlite"/)).toHaveLength(1);
    expect(await store.receive([incoming()])).toMatchObject([{ outcome: 'stored' }]);
  });

  it('a SQLite store rejects operations before open()', async () => {
    await expect(harness.store().receive([incoming()])).rejects.toThrow('is not open yet');
  });
});
