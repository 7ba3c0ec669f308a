import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { incoming, SqliteHarness } from '../../support/sqlite/sqlite-harness.ts';

let harness: SqliteHarness;
beforeEach(() => {
  harness = new SqliteHarness();
});
afterEach(() => harness.dispose());

/** Counts the turns of the event loop until `work` is done. */
async function turnsDuring(work: Promise<unknown>): Promise<number> {
  let turns = 0;
  let going = true;
  const count = () => {
    turns += 1;
    if (going) setImmediate(count);
  };
  count();
  await work;
  going = false;
  return turns;
}

describe('a SQLite inbox on a slow disk', () => {
  it('a SQLite inbox on a slow disk leaves the event loop free while a receive waits for the disk', async () => {
    const store = await harness.open({ threadPath: harness.thread({ commitMs: 300 }) });
    const before = performance.now();
    const turns = await turnsDuring(store.receive([incoming()]));
    expect(performance.now() - before).toBeGreaterThan(299);
    // A blocked event loop makes two or three turns. A busy machine makes far fewer turns than an idle machine.
    expect(turns).toBeGreaterThan(10);
  });

  it('a SQLite inbox on a slow disk leaves the event loop free while a commit waits for the disk', async () => {
    const store = await harness.open({ threadPath: harness.thread({ commitMs: 300 }) });
    await store.receive([incoming()]);
    const claim = await harness.claimer(store);
    const [lease] = await claim(1);
    const before = performance.now();
    const turns = await turnsDuring(store.commit(lease!, () => {}));
    expect(performance.now() - before).toBeGreaterThan(299);
    // A blocked event loop makes two or three turns. A busy machine makes far fewer turns than an idle machine.
    expect(turns).toBeGreaterThan(10);
  });

  it('a SQLite inbox on a slow disk commits operations that arrive together in one transaction', async () => {
    const store = await harness.open({ threadPath: harness.thread({ commitMs: 50 }) });
    const before = performance.now();
    await Promise.all(Array.from({ length: 200 }, () => store.receive([incoming()])));
    // In 200 transactions, the operations would take 10 seconds.
    expect(performance.now() - before).toBeLessThan(5000);
  });

  it('a SQLite inbox on a slow disk commits at most 500 operations in one transaction', async () => {
    const store = await harness.open({ threadPath: harness.thread({ commitMs: 50 }) });
    const before = performance.now();
    await Promise.all(Array.from({ length: 2001 }, () => store.receive([incoming()])));
    expect(performance.now() - before).toBeGreaterThan(199);
  });

  it('a SQLite inbox on a slow disk completes all operations before it closes', async () => {
    const store = await harness.open({ threadPath: harness.thread({ commitMs: 50 }) });
    const receives = Array.from({ length: 300 }, () => store.receive([incoming()]));
    const closed = store.close();
    const receipts = await Promise.all(receives);
    expect(receipts.flat().every(({ outcome }) => outcome === 'stored')).toBe(true);
    await closed;
    await expect(store.stats()).rejects.toThrow('is closed');
  });

  it('IN-08 operations on a hanging disk reject in bounded time with a warning that they may take effect later', async () => {
    const store = await harness.open({
      // Long enough for a machine that is so busy that the time limit of 5,200 ms passes late.
      threadPath: harness.thread({ commitMs: 12_000 }),
      busyTimeoutMs: 100,
    });
    const receive = store.receive([incoming()]);
    await expect(receive).rejects.toMatchObject({
      code: 'inbox_unavailable',
      message: expect.stringMatching(/did not respond within 5200 ms.*may take effect later/),
    });
  });
});
