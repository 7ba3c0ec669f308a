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

/**
 * A thread whose disk hangs: it responds to no call until a message `listen`, and ends at a message `close` or a call of `sync`.
 */
const HUNG_THREAD = `
  import { parentPort } from 'node:worker_threads';
  const numbers = [];
  parentPort.on('message', ({ kind, number, calls }) => {
    if (kind === 'close' || calls?.[0].name === 'sync') process.exit();
    if (kind === 'run') numbers.push(number);
    else for (const one of numbers.splice(0)) {
      parentPort.postMessage({ kind: 'done', number: one, outcomes: [], wakes: false, ahead: null, checkpoint: false });
    }
  });
  parentPort.postMessage({ kind: 'opened', warnings: [], clock: { wall: 0, clock: 0 } });
`;

describe('SqliteClient with a thread whose disk hangs', () => {
  let folder: string;
  let client: SqliteClient;
  let settings: SqliteSettings;
  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'hung-thread-'));
    const threadPath = join(folder, 'thread.mjs');
    writeFileSync(threadPath, HUNG_THREAD);
    // Calls time out after 500 ms.
    const options = resolveSqliteOptions({ file: join(folder, 'inbox.db'), threadPath });
    settings = { ...options, busyTimeoutMs: -2250 };
    client = new SqliteClient(settings, new StoreClock(new FakeRuntime()), () => {});
  });
  afterEach(async () => {
    await client.close();
    rmSync(folder, { recursive: true });
  });

  it('SqliteClient rejects calls that time out, and further calls until the thread responds to those', async () => {
    const call = () => client.run([{ name: 'pause', args: ['book', true] }]);
    // The thread may take longer than this time limit to start.
    await client.open().catch(() => {});
    await expect(call()).rejects.toThrow('did not respond');
    await expect(call()).rejects.toThrow('accepts no operation');
    client.listen(true);
    for (;;) {
      const late = await call().catch((error: Error) => error);
      if (!(late instanceof Error && late.message.includes('accepts no operation'))) {
        expect(late).toMatchObject({ message: expect.stringContaining('did not respond') });
        break;
      }
      await setImmediate();
    }
    client.listen(false);
  });

  it('SqliteClient survives if no thread can be started after one has ended, and starts one later', async () => {
    await client.open().catch(() => {});
    client.listen(true);
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
