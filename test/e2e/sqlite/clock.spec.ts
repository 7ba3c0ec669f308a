import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { incoming, SqliteHarness, TestWorker } from '../../support/sqlite/sqlite-harness.ts';

const HOUR = 3_600_000;
const LEASE = 60_000;
const BOOK = ['book'];
/** The maximum delay of the stored clock, in milliseconds. */
const SLACK = 500;

let harness: SqliteHarness;
beforeEach(() => {
  harness = new SqliteHarness();
});
afterEach(() => harness.dispose());

describe.each([HOUR, -HOUR])('IN-36 a wall clock that jumps by %d ms, on SQLite', (jump) => {
  it('IN-36 a jump of the wall clock delays no delivery of a process that started before or after the jump', async () => {
    const before = await harness.open();
    const worker = await TestWorker.start(before);
    await before.receive([incoming({ id: 'retry' })]);
    await before.fail(await worker.claimOne(), { error: 'no', retryInMs: 10_000 });
    harness.jumpWallClock(jump);
    const after = await harness.open();
    expect(await after.nextDueInMs(BOOK)).toBeLessThanOrEqual(10_000 + SLACK);
    // A delivery that one process receives is due in the other process within 500 ms, whichever clock is ahead.
    for (const [id, from, to] of [
      ['new', after, before],
      ['old', before, after],
    ] as const) {
      await from.receive([incoming({ id })]);
      const other = await TestWorker.start(to);
      // The first claim may read in the file that the clock of the other process is ahead.
      const found = await other.claim();
      harness.advance(SLACK);
      found.push(...(await other.claim()));
      expect(found.map((claimed) => claimed.id)).toContain(id);
    }
    harness.advance(10_001);
    await worker.claim();
    expect((await after.find('acme', 'retry'))?.deliveries[0]?.state).toBe('running');
  });

  it('IN-36 after a jump of the wall clock, no process declares a worker dead while this worker sends heartbeats', async () => {
    const before = await harness.open();
    const worker = await TestWorker.start(before);
    await before.receive([incoming()]);
    const lease = await worker.claimOne();
    harness.jumpWallClock(jump);
    const after = await harness.open();
    const observer = await TestWorker.start(after);
    for (let round = 0; round < 6; round += 1) {
      expect(await observer.heartbeat()).toMatchObject({ alive: true });
      harness.advance(LEASE / 3);
      expect(await worker.heartbeat()).toMatchObject({ alive: true });
    }
    expect((await after.complete(lease)).settled).toBe(true);
  });

  it('IN-36 a jump of the wall clock delays no delivery that was stored before a restart', async () => {
    const before = await harness.open();
    const worker = await TestWorker.start(before);
    await before.receive([incoming({ id: 'retry' }), incoming({ id: 'due' })]);
    const leases = await worker.claim();
    const retried = leases.find(({ id }) => id === 'retry')!;
    await before.fail(retried, { error: 'no', retryInMs: 10_000 });
    await before.release(leases.find(({ id }) => id === 'due')!);
    await before.retire(worker.id, 0);
    await before.close();
    harness.jumpWallClock(jump);
    const after = await harness.open();
    const again = await TestWorker.start(after);
    harness.advance(SLACK);
    const first = await again.claim();
    expect(first.map(({ id }) => id)).toContain('due');
    harness.advance(11_000);
    const second = await again.claim();
    expect([...first, ...second].map(({ id }) => id).toSorted()).toEqual(['due', 'retry']);
  });
});
