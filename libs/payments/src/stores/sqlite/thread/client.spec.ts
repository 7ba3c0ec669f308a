import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { resolveSqliteOptions } from '../sqlite-options.js';
import { SqliteClient } from './client.js';

/** A thread whose disk hangs: it responds to no call. It ends at a message `close` or `listen`. */
const HUNG_THREAD = `
  import { parentPort } from 'node:worker_threads';
  parentPort.on('message', ({ kind }) => kind !== 'calls' && process.exit());
  parentPort.postMessage({ kind: 'opened', sqliteVersion: '3.51.3', clock: { wall: 0, clock: 0 } });
`;

describe('SqliteClient with a thread whose disk hangs', () => {
  let folder: string;
  let client: SqliteClient;
  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'hung-thread-'));
    const threadPath = join(folder, 'thread.mjs');
    writeFileSync(threadPath, HUNG_THREAD);
    const settings = resolveSqliteOptions({ file: join(folder, 'inbox.db'), threadPath });
    const times = { wall: 0, clock: 0, processOffset: 0 };
    client = new SqliteClient(
      // Calls time out at once.
      { ...settings, busyTimeoutMs: -2500 },
      { times: () => times, onWake: () => {}, onClock: () => {} },
    );
  });
  afterEach(async () => {
    await client.close();
    rmSync(folder, { recursive: true });
  });

  it('SqliteClient rejects calls while the thread has 20,000 others, timed-out ones included, until the thread ends', async () => {
    // This call may time out too; then the next call starts another thread.
    await client.open().catch(() => {});
    const call = () => client.call('pause', ['book', true]);
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
