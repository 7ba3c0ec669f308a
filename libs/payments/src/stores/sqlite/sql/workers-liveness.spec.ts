import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { SqliteDatabase } from '../../../../../../test/support/sqlite/sqlite-database.js';
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

const check = (now: number, rows: WorkerRow[]): string[] =>
  liveness.check(rows, now).map(({ id }) => id);

describe('a worker in WorkerLiveness', () => {
  it('IN-12 a worker is dead if checks read the same heartbeat for longer than the lease of the worker', () => {
    expect(check(1, [worker('a', 0)])).toEqual([]);
    expect(check(1 + LEASE, [worker('a', 0)])).toEqual([]);
    expect(check(2 + LEASE, [worker('a', 0)])).toEqual(['a']);
    expect(check(2 + LEASE, [worker('a', LEASE)])).toEqual([]);
  });

  it('IN-36 the process clock of the checking process decides when a worker is dead', () => {
    for (const time of [1000, 1000 + LEASE]) {
      expect(check(time, [worker('a', -24 * HOUR)])).toEqual([]);
    }
    expect(check(1001 + LEASE, [worker('a', -24 * HOUR)])).toEqual(['a']);
  });

  it('IN-36 a worker stays alive if the checking process made no check for a long time', () => {
    check(0, [worker('a', 0)]);
    expect(check(2 * LEASE, [worker('a', 2 * LEASE - 10)])).toEqual([]);
  });

  it.each([HOUR, -HOUR])(
    'IN-36 a worker that sends heartbeats stays alive if the clock of the checking process is off by %d ms',
    (ahead) => {
      for (let time = 0; time < 10 * LEASE; time += LEASE / 4) {
        expect(check(time + ahead, [worker('a', time)])).toEqual([]);
      }
    },
  );

  it('a retired worker is removed at the end of its grace period, or immediately if the grace period is 0', () => {
    check(0, [worker('a', 0), worker('b', 0)]);
    expect(check(20, [worker('a', 10, 1, 0), worker('b', 10, 1, 100)])).toEqual(['a']);
    expect(check(119, [worker('b', 10, 1, 100)])).toEqual([]);
    expect(check(120, [worker('b', 10, 1, 100)])).toEqual(['b']);
  });
});

describe('the age of a heartbeat', () => {
  afterEach(() => void jest.restoreAllMocks());

  it('IN-12 the age of a heartbeat counts from the time of its first read, even if the request waited for a lock', async () => {
    let machineMs = 0;
    jest.spyOn(process.hrtime, 'bigint').mockImplementation(() => BigInt(machineMs) * 1_000_000n);
    const inbox = await SqliteDatabase.open();
    const [a, observer] = [inbox.worker(LEASE), inbox.worker(10 * LEASE)];
    const beat = (worker: string, times = inbox.times) => inbox.store(times).heartbeat(worker);
    const requested = inbox.times;
    inbox.now += 2 * LEASE;
    machineMs += 2 * LEASE;
    // Another process stores the heartbeat.
    inbox.connection.run('UPDATE payments_inbox_worker SET heartbeat_at = ? WHERE id = ?', [
      inbox.now,
      a,
    ]);
    await beat(observer, requested);
    machineMs += LEASE;
    inbox.now += LEASE;
    await beat(observer);
    expect(inbox.all('SELECT id FROM payments_inbox_worker')).toHaveLength(2);
    machineMs += 1;
    inbox.now += 1;
    await beat(observer);
    expect(inbox.all('SELECT id FROM payments_inbox_worker')).toEqual([{ id: observer }]);
    inbox.close();
  });
});
