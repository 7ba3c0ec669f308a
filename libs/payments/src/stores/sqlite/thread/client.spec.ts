import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate, setTimeout } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { resolveSqliteOptions } from '../sqlite-options.js';
import type { SqliteSettings } from '../sqlite-options.js';
import { FakeRuntime } from '../../../../../../test/support/time/fake-runtime.js';
import { StoreClock } from '../store-clock.js';
import { SqliteClient } from './client.js';

/** A thread whose disk is slow: it responds to a call after a second. It ends at a message `close` or a call of `sync`. */
const SLOW_THREAD = `
  import { parentPort } from 'node:worker_threads';
  parentPort.on('message', ({ kind, number, calls }) => {
    if (kind === 'close' || calls[0].name === 'sync') process.exit();
    const done = { kind: 'done', number, outcomes: [], wakes: false, ahead: null, checkpoint: false };
    setTimeout(() => parentPort.postMessage(done), 1000);
  });
  parentPort.postMessage({ kind: 'opened', warnings: [], clock: { wall: 0, clock: 0 } });
`;

describe('SqliteClient with a thread whose disk is slow', () => {
  let folder: string;
  let client: SqliteClient;
  let settings: SqliteSettings;
  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'slow-thread-'));
    const threadPath = join(folder, 'thread.mjs');
    writeFileSync(threadPath, SLOW_THREAD);
    // Calls time out after 500 ms.
    const options = resolveSqliteOptions({ file: join(folder, 'inbox.db'), threadPath });
    settings = { ...options, busyTimeoutMs: -2250 };
    client = new SqliteClient(settings, new StoreClock(new FakeRuntime()), () => {});
  });
  afterEach(async () => {
    await client.close();
    rmSync(folder, { recursive: true });
  });

  it('SqliteClient rejects calls that time out, and rejects further calls until the thread responds to the late calls', async () => {
    const call = () => client.run([{ name: 'pause', args: ['book', true] }]);
    // The thread may take longer than this time limit to start.
    await client.open().catch(() => {});
    await expect(call()).rejects.toThrow('did not respond');
    await expect(call()).rejects.toThrow('accepts no operation');
    for (;;) {
      const late = await call().catch((error: Error) => error);
      if (!(late instanceof Error && late.message.includes('accepts no operation'))) {
        expect(late).toMatchObject({ message: expect.stringContaining('did not respond') });
        break;
      }
      await setImmediate();
    }
  });

  it('SqliteClient survives a failed restart of its thread, and starts a thread with a later call', async () => {
    await client.open().catch(() => {});
    const sync = () => client.run([{ name: 'sync', args: [] }]);
    // Node throws when a thread cannot be started, here because it cannot copy the function.
    const broken = Object.assign(settings, { notCopyable: () => {} });
    await expect(sync()).rejects.toThrow('lost its thread');
    // An uncaught exception fails the test.
    await setTimeout(1500);
    await expect(sync()).rejects.toThrow('could not be cloned');
    Reflect.deleteProperty(broken, 'notCopyable');
    await expect(sync()).rejects.toThrow('lost its thread');
  });
});
