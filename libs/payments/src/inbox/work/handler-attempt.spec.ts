import { describe, expect, it } from '@jest/globals';
import { logged } from '../../../../../test/support/log/captured-log.js';
import { started, turns, WorkerBench } from '../../../../../test/support/inbox/worker-bench.js';
import { fixed, none } from '../../events/retry-schedule.js';

const DOWN = () => Promise.reject(new Error('down'));

describe('HandlerAttempt', () => {
  it('marks what was used up as dead without running it, and reports it as failed', async () => {
    const bench = await started(new WorkerBench({ retry: fixed([0, 0]) }));
    bench.handle = () => Promise.reject(new Error('no'));
    await bench.receive('a');
    await turns();
    bench.runtime.advance(0);
    await turns();
    // The schedule of the next version of the application is shorter.
    const next = new WorkerBench({ retry: none }, { of: bench });
    await bench.worker.drain();
    const watch = next.settlements.watch('c', 'a');
    next.worker.start();
    expect(await watch.failures(['h'])).toEqual(['h']);
    expect(next.ran).toEqual([]);
    expect(await bench.delivery('a')).toMatchObject({
      state: 'dead',
      lastError: expect.stringMatching(
        /started 2 times, and its retry schedule has 1 attempts now/,
      ),
    });
  });

  it('IN-13 settles while the store is down for longer than the lease, and reports once it is settled', async () => {
    const bench = await started(new WorkerBench({ leaseMs: 1000 }));
    const complete = bench.store.complete.bind(bench.store);
    const watch = bench.settlements.watch('c', 'a');
    bench.store.complete = DOWN;
    bench.store.heartbeat = DOWN;
    await bench.assign('a');
    for (let second = 0; second < 100; second += 1) {
      await turns();
      bench.runtime.advance(1000);
    }
    expect(watch.hasEnded('h')).toBe(false);
    bench.store.complete = complete;
    bench.runtime.advance(5000);
    await turns();
    expect(await bench.delivery('a')).toMatchObject({ state: 'done', attempts: 1 });
    expect(watch.hasEnded('h')).toBe(true);
    expect(bench.ran).toHaveLength(1);
  });

  it('IN-13 records nothing of a delivery that was freed, and logs that', () =>
    logged(async (log) => {
      const bench = await started(new WorkerBench());
      bench.store.complete = async () => ({ settled: false, nextDue: false });
      await bench.assign('a');
      await turns();
      expect(
        log.matching(/^warn The result of delivery of event a .* was not stored/),
      ).toHaveLength(1);
      expect(log.matching(/failed|done/)).toEqual([]);
    }));

  it('IN-16 runs the next delivery of a key at once, although the answer to the end of the first was lost', async () => {
    const bench = await started(new WorkerBench({ leaseMs: 3_600_000 }));
    const complete = bench.store.complete.bind(bench.store);
    bench.store.complete = async (lease) => {
      bench.store.complete = complete;
      await complete(lease);
      throw new Error('the connection was cut');
    };
    bench.store.onWake = () => () => {};
    await bench.receive('first', 'key');
    await bench.receive('second', 'key');
    await turns();
    bench.runtime.advance(100);
    await turns();
    expect(bench.ids).toEqual(['first', 'second']);
    expect(await bench.isDone('second')).toBe(true);
  });

  it('stops to settle when the application closes while the store is down', () =>
    logged(async (log) => {
      const bench = await started(new WorkerBench({ drainMs: 50 }));
      bench.store.complete = DOWN;
      await bench.assign('a');
      await turns();
      const drained = bench.worker.drain();
      await turns();
      bench.runtime.advance(50);
      await drained;
      expect(bench.runtime.pending).toBe(0);
      expect(
        log.matching(/^error .*could not be stored: Error: down\. The application closes/),
      ).toHaveLength(1);
    }));

  it('logs a failure only once it is recorded', () =>
    logged(async (log) => {
      const bench = await started(new WorkerBench());
      const fail = bench.store.fail.bind(bench.store);
      bench.store.fail = DOWN;
      bench.handle = DOWN;
      await bench.assign('a');
      await turns();
      expect(log.matching(/could not be stored/)).toHaveLength(1);
      expect(log.matching(/next attempt/)).toEqual([]);
      bench.store.fail = fail;
      bench.runtime.advance(100);
      await turns();
      expect(log.matching(/next attempt in 1500 ms/)).toHaveLength(1);
    }));

  it('passes the handler a frozen context, and bytes whose change changes nothing', async () => {
    const bench = await started(new WorkerBench());
    bench.handle = (_event, context) => {
      context.raw.fill(0);
    };
    await bench.assign('a');
    await turns();
    expect(Object.isFrozen(bench.ran[0]!.context)).toBe(true);
    const { raw } = (await bench.store.find('c', 'a'))!;
    expect(JSON.parse(raw!.toString())).toMatchObject({ id: 'a' });
  });

  it('logs the stack of a failing handler at the first attempt and at the last, in between one line', () =>
    logged(async (log) => {
      const bench = await started(new WorkerBench({ retry: fixed([1000, 1000, 1000]) }));
      bench.handle = () => Promise.reject(new RangeError('no such order'));
      await bench.receive('a');
      await turns();
      for (let attempt = 2; attempt <= 4; attempt += 1) {
        bench.runtime.advance(1000);
        await turns();
      }
      const lines = log.matching(/no such order/);
      expect(lines.map((line) => /\n {4}at /.test(line))).toEqual([true, false, false, true]);
      expect(lines[1]).toMatch(
        /^warn Delivery of event a \(company c\) to h failed \(attempt 2 of 4\); next attempt in 1000 ms\. RangeError: no such order PaymentInbox$/,
      );
      expect(lines[3]).toMatch(/^error .*\(attempt 4 of 4\) and is dead/);
    }));
});
