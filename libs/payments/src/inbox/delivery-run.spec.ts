import { describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { CapturedLog } from '../../../../test/support/captured.log.js';
import { turns, WorkerBench } from '../../../../test/support/worker.bench.js';
import { fixed, none } from '../events/retry-schedule.js';
import type { InboxStore } from './inbox-store.js';

const DOWN = () => Promise.reject(new Error('down'));

async function started(...setup: ConstructorParameters<typeof WorkerBench>): Promise<WorkerBench> {
  const bench = new WorkerBench(...setup);
  bench.worker.start();
  await turns();
  return bench;
}

/** Lets the store of a bench commit, as one that is transactional. */
function commits({ store }: WorkerBench): { work: unknown[] } {
  const seen = { work: [] as unknown[] };
  const commit: InboxStore['commit'] = async (lease, work) => {
    const result = await work(null);
    const { settled, nextDue } = await store.complete(lease);
    if (!settled) throw Object.assign(new Error('lease lost'), { code: 'lease_lost' });
    seen.work.push(result);
    return { result, nextDue };
  };
  Object.assign(store, { commit });
  return seen;
}

async function logged<R>(work: (log: CapturedLog) => Promise<R>): Promise<R> {
  const log = new CapturedLog();
  Logger.overrideLogger(log);
  try {
    return await work(log);
  } finally {
    Logger.overrideLogger(false);
  }
}

describe('DeliveryRun', () => {
  it('marks what was used up as dead without running it, and reports it as failed', async () => {
    const bench = await started({ retry: fixed([0, 0]) });
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
    const bench = await started({ leaseMs: 1000 });
    const complete = bench.store.complete.bind(bench.store);
    const watch = bench.settlements.watch('c', 'a');
    bench.store.complete = DOWN;
    bench.store.heartbeat = DOWN;
    await bench.assign('a');
    for (let second = 0; second < 100; second += 1) {
      await turns();
      bench.runtime.advance(1000);
    }
    expect(watch.has('h')).toBe(false);
    bench.store.complete = complete;
    bench.runtime.advance(5000);
    await turns();
    expect(await bench.delivery('a')).toMatchObject({ state: 'done', attempts: 1 });
    expect(watch.has('h')).toBe(true);
    expect(bench.ran).toHaveLength(1);
  });

  it('IN-13 records nothing of a delivery that was freed, and logs that', () =>
    logged(async (log) => {
      const bench = await started();
      bench.store.complete = async () => ({ settled: false, nextDue: false });
      await bench.assign('a');
      await turns();
      expect(
        log.matching(/^warn The result of delivery of event a .* was not stored/),
      ).toHaveLength(1);
      expect(log.matching(/failed|done/)).toEqual([]);
    }));

  it('IN-16 runs the next delivery of a key at once, although the answer to the end of the first was lost', async () => {
    const bench = await started({ leaseMs: 3_600_000 });
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
      const bench = await started({ drainMs: 50 });
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
      const bench = await started();
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
    const bench = await started();
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
      const bench = await started({ retry: fixed([1000, 1000, 1000]) });
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

describe('the time limit of a DeliveryRun', () => {
  it('IN-30 aborts the signal, fails the attempt, frees the place, and warns of what ignores its signal', () =>
    logged(async (log) => {
      const bench = await started({ concurrency: 1, timeoutMs: 5000, retry: fixed([60_000]) });
      let end = () => {};
      bench.handle = () => new Promise<void>((resolve) => (end = resolve));
      await bench.assign('hangs');
      await bench.assign('waits');
      await turns();
      bench.runtime.advance(4999);
      await turns();
      expect(bench.ran.map(({ context }) => context.signal.aborted)).toEqual([false]);
      bench.handle = () => {};
      bench.runtime.advance(1);
      await turns();
      expect(bench.ran[0]!.context.signal).toMatchObject({
        aborted: true,
        reason: { name: 'TimeoutError', message: expect.stringMatching(/5000 ms/) },
      });
      expect(await bench.delivery('hangs')).toMatchObject({
        state: 'pending',
        attempts: 1,
        lastError: expect.stringMatching(/\(handler_timeout\): Handler h took longer than 5000 ms/),
      });
      expect(await bench.isDone('waits')).toBe(true);
      expect(log.matching(/^warn Delivery of event hangs .*handler_timeout/)).toHaveLength(1);
      expect(bench.worker.ignoring).toBe(0);
      bench.runtime.advance(500);
      expect(bench.worker.ignoring).toBe(1);
      expect(log.matching(/^warn Handler h still runs .*\(1 such runs/)).toHaveLength(1);
      end();
      await turns();
      expect(bench.worker.ignoring).toBe(0);
      expect(await bench.delivery('hangs')).toMatchObject({ state: 'pending', attempts: 1 });
    }));

  it('IN-30 takes the limit of the handler, and does not warn of one that heeds its signal, even by failing', () =>
    logged(async (log) => {
      const bench = await started(
        { timeoutMs: 50 },
        { handlers: { h: { timeoutMs: 1000, retry: none } } },
      );
      bench.handle = (_event, { signal }) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => reject(signal.reason as Error));
        });
      await bench.assign('a');
      await turns();
      bench.runtime.advance(999);
      await turns();
      expect(bench.ran[0]!.context.signal.aborted).toBe(false);
      bench.runtime.advance(1);
      await turns();
      expect(await bench.delivery('a')).toMatchObject({ state: 'dead' });
      bench.runtime.advance(500);
      expect(log.matching(/still runs/)).toEqual([]);
      expect(bench.worker.ignoring).toBe(0);
    }));

  it('IN-30 refuses a commit that ends after the attempt failed', async () => {
    const bench = await started({ timeoutMs: 1000, retry: none });
    const { work } = commits(bench);
    let end = () => {};
    let refused: unknown;
    bench.handle = (_event, { commit }) =>
      commit(() => new Promise<void>((resolve) => (end = resolve))).catch((error: unknown) => {
        refused = error;
      });
    await bench.assign('a');
    await turns();
    bench.runtime.advance(1000);
    await turns();
    expect(await bench.delivery('a')).toMatchObject({ state: 'dead', attempts: 1 });
    end();
    await turns();
    expect(refused).toMatchObject({ code: 'lease_lost' });
    expect(work).toEqual([]);
    expect(await bench.delivery('a')).toMatchObject({ state: 'dead' });
  });

  it('IN-30 lets a commit win that was stored before the time was up, although its answer comes later', () =>
    logged(async (log) => {
      const bench = await started({ timeoutMs: 1000 });
      commits(bench);
      const commit = bench.store.commit.bind(bench.store) as InboxStore['commit'];
      let answer = () => {};
      Object.assign(bench.store, {
        commit: async (...args: Parameters<typeof commit>) => {
          const committed = await commit(...args);
          await new Promise<void>((resolve) => (answer = resolve));
          return committed;
        },
      });
      bench.handle = (_event, context) => context.commit(() => 'booked');
      const watch = bench.settlements.watch('c', 'a');
      await bench.assign('a');
      await turns();
      bench.runtime.advance(1000);
      await turns();
      expect(watch.has('h')).toBe(false);
      answer();
      expect(await watch.failures(['h'])).toEqual([]);
      expect(await bench.delivery('a')).toMatchObject({
        state: 'done',
        attempts: 1,
        lastError: null,
      });
      expect(log.matching(/next attempt|was not stored/)).toEqual([]);
    }));

  it('IN-22 leaves a delivery done whose handler fails, or hangs, after its commit', () =>
    logged(async (log) => {
      const bench = await started({ timeoutMs: 1000, concurrency: 1 });
      commits(bench);
      bench.handle = async (_event, { commit }) => {
        await commit(() => {});
        throw new Error('e-mail failed');
      };
      await bench.receive('fails');
      await turns();
      expect(await bench.isDone('fails')).toBe(true);
      expect(
        log.matching(/^error .* is done, but its handler failed after its commit.*e-mail failed/),
      ).toHaveLength(1);
      bench.handle = async (_event, { commit }) => {
        await commit(() => {});
        await new Promise(() => {});
      };
      await bench.receive('hangs');
      await turns();
      bench.handle = () => {};
      await bench.receive('next');
      await turns();
      bench.runtime.advance(1000);
      await turns();
      expect(await bench.isDone('hangs')).toBe(true);
      expect(await bench.isDone('next')).toBe(true);
      expect(
        log.matching(
          /event hangs .* is done, but its handler failed after its commit.*handler_timeout/,
        ),
      ).toHaveLength(1);
    }));

  it('waits for a commit that its handler does not await', async () => {
    const bench = await started();
    commits(bench);
    let end = () => {};
    bench.handle = (_event, { commit }) => {
      void commit(() => new Promise<void>((resolve) => (end = resolve)));
    };
    const watch = bench.settlements.watch('c', 'a');
    await bench.assign('a');
    await turns();
    expect(await bench.delivery('a')).toMatchObject({ state: 'running' });
    expect(watch.has('h')).toBe(false);
    end();
    expect(await watch.failures(['h'])).toEqual([]);
    expect(await bench.isDone('a')).toBe(true);
  });

  it('IN-30 does not wait for a commit that hangs, after another process has freed its delivery', async () => {
    const bench = await started({ timeoutMs: 1000 });
    commits(bench);
    bench.handle = (_event, { commit }) => commit(() => new Promise(() => {}));
    bench.store.fail = async () => ({ settled: false, nextDue: false });
    const watch = bench.settlements.watch('c', 'a');
    await bench.assign('a');
    await turns();
    for (const ms of [1000, 5000]) {
      bench.runtime.advance(ms);
      await turns();
    }
    expect(watch.has('h')).toBe(true);
  });

  it('runs the next delivery of an ordering key after a commit', async () => {
    const bench = await started();
    commits(bench);
    bench.handle = (_event, { commit }) => commit(() => {});
    await bench.receive('first', 'key');
    await bench.receive('second', 'key');
    await bench.receive('third', 'key');
    await turns();
    expect(bench.ids).toEqual(['first', 'second', 'third']);
  });
});
