import { beforeEach, describe, expect, it } from '@jest/globals';
import { WorkerLiveness } from './workers.js';
import type { WorkerRow } from './workers.js';

const HOUR = 3_600_000;
const LEASE = 30_000;

let liveness: WorkerLiveness;
beforeEach(() => {
  liveness = new WorkerLiveness();
});

const worker = (
  id: string,
  heartbeat_at: number,
  retired: 0 | 1 = 0,
  lease_ms = LEASE,
): WorkerRow => ({
  id,
  heartbeat_at,
  retired,
  lease_ms,
});

/** `clockAheadMs`: how far the clock of this process is ahead of that of the workers. */
function check(monotonic: number, rows: WorkerRow[], clockAheadMs = 0): string[] {
  const times = { wall: 0, clock: monotonic + clockAheadMs, monotonic };
  return liveness.check(rows, times).map(({ id }) => id);
}

describe('a worker in WorkerLiveness', () => {
  it('IN-12 a worker is dead if it sends no heartbeat for longer than its lease', () => {
    expect(check(0, [worker('a', 0)])).toEqual([]);
    expect(check(1, [worker('a', 0)])).toEqual([]);
    expect(check(1 + LEASE, [worker('a', 0)])).toEqual([]);
    expect(check(2 + LEASE, [worker('a', 0)])).toEqual(['a']);
    expect(check(2 + LEASE, [worker('a', LEASE)])).toEqual([]);
  });

  it('IN-36 a worker is dead by the process clock of the checking process, whose store clock may be ahead', () => {
    for (const time of [1000, 1001, 1001 + LEASE]) {
      expect(check(time, [worker('a', 1000)], 24 * HOUR)).toEqual([]);
    }
    expect(check(1002 + LEASE, [worker('a', 1000)], 24 * HOUR)).toEqual(['a']);
  });

  it('IN-36 a worker stays alive if the checking process made no check for long and its clock is ahead', () => {
    check(0, [worker('a', 0)], HOUR);
    check(1, [worker('a', 0)], HOUR);
    expect(check(2 * LEASE, [worker('a', 2 * LEASE - 10)], HOUR)).toEqual([]);
  });

  it.each([HOUR, -HOUR])(
    'IN-36 a worker stays alive with heartbeats if the clock of the checking process is off by %d ms',
    (ahead) => {
      for (let time = 0; time < 10 * LEASE; time += LEASE / 3) {
        expect(check(time, [worker('a', time)], ahead)).toEqual([]);
      }
    },
  );

  it('IN-12 a worker stays alive if a check waited for a lock and read a heartbeat later than its own time', () => {
    check(0, [worker('a', 0)]);
    // Requested at 10,000; it waited for a lock until 45,000.
    expect(check(10_000, [worker('a', 44_000)])).toEqual([]);
    expect(check(45_000, [worker('a', 44_000)])).toEqual([]);
    expect(check(45_000 + LEASE, [worker('a', 44_000)])).toEqual([]);
    expect(check(45_001 + LEASE, [worker('a', 44_000)])).toEqual(['a']);
  });

  it('a retired worker is removed at the end of its grace, at once for a grace of 0', () => {
    check(0, [worker('a', 0), worker('b', 0)]);
    expect(check(10, [worker('a', 10, 1, 0), worker('b', 10, 1, 100)])).toEqual(['a']);
    expect(check(20, [worker('b', 10, 1, 100)])).toEqual([]);
    expect(check(119, [worker('b', 10, 1, 100)])).toEqual([]);
    expect(check(120, [worker('b', 10, 1, 100)])).toEqual(['b']);
  });
});
