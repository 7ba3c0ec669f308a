import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { CapturedLog } from '../support/captured.log.js';
import { incoming, SqliteHarness } from './sqlite.harness.ts';

let harness: SqliteHarness;
beforeEach(() => {
  harness = new SqliteHarness();
});
afterEach(() => harness.dispose());

describe('a SQLite inbox that cannot do what it is asked', () => {
  it('says what holds the lock up, in bounded time, and works again when it is free', async () => {
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
    // What only reads is not held up by a writer.
    expect((await store.stats()).deliveries).toEqual([]);
    application.exec('ROLLBACK');
    expect(await store.receive([incoming({ raw })])).toMatchObject([{ outcome: 'stored' }]);
  });

  it('fails the one operation of a batch that is wrong, and no other', async () => {
    const store = await harness.open({ groupCommitMs: 20 });
    const twice = incoming({ handlers: ['book', 'book'] });
    const [good, bad, other] = await Promise.allSettled([
      store.receive([incoming()]),
      store.receive([incoming({ id: 'beside' }), twice]),
      store.receive([incoming()]),
    ]);
    expect([good.status, bad.status, other.status]).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect(await store.find('acme', 'beside')).toBeUndefined();
    expect((await store.stats()).deliveries).toMatchObject([{ state: 'pending', count: 2 }]);
  });

  it('rejects what is not plain data, and nothing beside it', async () => {
    const store = await harness.open();
    const handlers = [(() => {}) as never];
    const [odd, good] = await Promise.allSettled([
      store.receive([incoming({ handlers })]),
      store.receive([incoming()]),
    ]);
    expect([odd.status, good.status]).toEqual(['rejected', 'fulfilled']);
  });

  it('does not open in a folder that is not there, and says so', async () => {
    const store = harness.store({ file: join(harness.folder, 'none', 'inbox.db') });
    await expect(store.open()).rejects.toMatchObject({
      code: 'inbox_unavailable',
      message: expect.stringContaining('Its folder must exist'),
    });
  });

  it('does not open what is no database, and leaves it alone', async () => {
    writeFileSync(harness.file, 'a letter to the bank, long enough to be no empty file'.repeat(90));
    await expect(harness.store().open()).rejects.toMatchObject({
      code: 'inbox_unavailable',
      message: expect.stringContaining('file is not a database'),
    });
  });

  it('does not open tables that another version created', async () => {
    await (await harness.open()).close();
    harness.connect().exec('UPDATE payments_inbox_meta SET version = 99');
    await expect(harness.store().open()).rejects.toMatchObject({
      code: 'inbox_unavailable',
      message: expect.stringContaining('tables of version 99'),
    });
  });

  it('does not open tables of an unreleased version, and tells how to drop them', async () => {
    harness.connect().exec('CREATE TABLE payments_inbox_schema (version INTEGER)');
    await expect(harness.store().open()).rejects.toMatchObject({
      code: 'inbox_unavailable',
      message: expect.stringMatching(/Delete the file.*DROP TABLE payments_inbox_schema;/),
    });
  });

  it('does not open on a SQLite with the WAL-reset bug, and creates no file', async () => {
    const old = { allowOldSqlite: false, sqliteVersion: '3.51.2' };
    await expect(harness.store(old).open()).rejects.toMatchObject({
      code: 'options_invalid',
      message: expect.stringMatching(/SQLite 3\.51\.2.*WAL-reset bug/),
    });
    expect(existsSync(harness.file)).toBe(false);
  });

  it('works on an old SQLite if that is allowed, with a warning', async () => {
    const log = new CapturedLog();
    Logger.overrideLogger(log);
    const store = await harness.open({ sqliteVersion: '3.50.0' });
    expect(log.matching(/3\.50\.0.*"allowOldSqlite"/)).toHaveLength(1);
    expect(await store.receive([incoming()])).toMatchObject([{ outcome: 'stored' }]);
  });

  it('rejects what is asked before it is open', async () => {
    await expect(harness.store().receive([incoming()])).rejects.toThrow('is not open yet');
  });
});
