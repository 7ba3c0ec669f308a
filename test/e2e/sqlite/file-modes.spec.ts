import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, readdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { CapturedLog } from '../../support/log/captured-log.js';
import { SqliteHarness, startChild } from '../../support/sqlite/sqlite-harness.ts';

let harness: SqliteHarness;
let log: CapturedLog;
beforeEach(() => {
  harness = new SqliteHarness();
  log = new CapturedLog();
  Logger.overrideLogger(log);
});
afterEach(() => harness.dispose());

/** Returns the permissions of each file of a database, by the suffix of the file name. */
function modes(file = harness.file): Record<string, string> {
  const files = ['', '-wal', '-shm'].map((end) => [
    end,
    (statSync(file + end).mode & 0o777).toString(8),
  ]);
  return Object.fromEntries(files) as Record<string, string>;
}

const PRIVATE = { '': '600', '-wal': '600', '-shm': '600' };
const SHARED = /allow other users/;

(process.platform === 'win32' ? describe.skip : describe)('the files of a SQLite inbox', () => {
  it.each(['000', '022', '477'])(
    'SE-11 the database file, -wal and -shm are created with mode 0600 under the umask %s',
    async (umask) => {
      const before = process.umask(Number.parseInt(umask, 8));
      try {
        await harness.open();
      } finally {
        process.umask(before);
      }
      expect(modes()).toEqual(PRIVATE);
      expect(log.matching(SHARED)).toEqual([]);
    },
  );

  it('SE-11 the files of a SQLite inbox have mode 0600 if several processes create them at the same time', async () => {
    const before = process.umask(0);
    const children = Array.from({ length: 4 }, () => startChild('claim', harness.file));
    process.umask(before);
    await Promise.all(children.map((child) => child.until(() => child.out.length > 0)));
    const created = modes();
    await Promise.all(children.map((child) => child.kill()));
    expect(created).toEqual(PRIVATE);
  });

  it('SE-11 a warning at boot names the files that other users may access, their modes and the fix', async () => {
    const folder = join(harness.folder, "the shop's data");
    mkdirSync(folder);
    const file = join(folder, 'inbox.db');
    writeFileSync(file, '');
    chmodSync(file, 0o644);
    const store = await harness.open({ file });
    const [warning, ...more] = log.matching(SHARED);
    expect(more).toEqual([]);
    expect(warning).toContain(
      `${file} (mode 0644), ${file}-wal (mode 0644), ${file}-shm (mode 0644). Run: chmod 600 '`,
    );
    execFileSync('sh', ['-c', /chmod .*'/.exec(warning!)![0]]);
    expect(modes(file)).toEqual(PRIVATE);
    await store.close();
    const second = await harness.open({ file });
    expect(log.matching(SHARED)).toHaveLength(1);
    expect(modes(file)).toEqual(PRIVATE);
    await second.close();
  });

  it('SE-11 the warning at boot names only the file that other users may access', async () => {
    await harness.open();
    chmodSync(`${harness.file}-wal`, 0o620);
    await harness.open();
    const [warning] = log.matching(SHARED);
    expect(warning).toContain(`access them: ${harness.file}-wal (mode 0620). Run: chmod 600 `);
  });

  it('SE-11 the warning at boot names the files that a symbolic link leads to', async () => {
    const link = join(harness.folder, 'link.db');
    // SQLite itself creates the file if the target of the link does not exist.
    symlinkSync(harness.file, link);
    const before = process.umask(0o022);
    try {
      await harness.open({ file: link });
    } finally {
      process.umask(before);
    }
    expect(log.matching(SHARED)).toEqual([
      expect.stringContaining(`${harness.file} (mode 0644), ${harness.file}-wal (mode 0644)`),
    ]);
  });

  it('open() creates no file if the folder of the SQLite file is missing, and the error names the fix', async () => {
    const file = join(harness.folder, 'none', 'inbox.db');
    await expect(harness.store({ file }).open()).rejects.toThrow('Its folder must exist');
    expect(readdirSync(harness.folder)).toEqual([]);
  });
});
