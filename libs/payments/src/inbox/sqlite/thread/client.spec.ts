import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { resolveSqliteOptions } from '../sqlite-options.js';
import { SqliteClient } from './client.js';

/** A thread whose disk hangs: it answers nothing. It ends when it is closed, or is to look for writes. */
const HUNG_THREAD = `
  import { parentPort } from 'node:worker_threads';
  parentPort.on('message', ({ kind }) => kind !== 'calls' && process.exit());
  parentPort.postMessage({ kind: 'opened', sqliteVersion: '3.51.3', clock: { wall: 0, clock: 0 } });
`;

describe('the client of a thread whose disk hangs', () => {
  let folder: string;
  let client: SqliteClient;
  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'hung-thread-'));
    const threadPath = join(folder, 'thread.mjs');
    writeFileSync(threadPath, HUNG_THREAD);
    const settings = resolveSqliteOptions({ file: join(folder, 'inbox.db'), threadPath });
    const times = { wall: 0, clock: 0, monotonic: 0 };
    client = new SqliteClient(
      // Calls time out at once.
      { ...settings, busyTimeoutMs: -2500 },
      () => times,
      () => {},
      () => {},
    );
  });
  afterEach(async () => {
    await client.close();
    rmSync(folder, { recursive: true });
  });

  it('rejects calls that wait behind too many others, also if those have timed out, until the thread ends', async () => {
    // It may time out as well; then the first call starts another thread.
    await client.open().catch(() => {});
    const call = () => client.call('pause', { handler: 'book', paused: true });
    const late = await Promise.allSettled(Array.from({ length: 20_000 }, call));
    expect(late.every(({ status }) => status === 'rejected')).toBe(true);
    await expect(call()).rejects.toThrow('20000 operations');
    const { unexpectedEnds } = client;
    client.listen(true);
    while (client.unexpectedEnds === unexpectedEnds) await setImmediate();
    client.listen(false);
    await expect(call()).rejects.toThrow('did not respond');
  });
});
