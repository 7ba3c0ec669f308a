import { describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { CapturedLog } from '../../../../../test/support/log/captured-log.js';
import { started, turns, WorkerBench } from '../../../../../test/support/inbox/worker-bench.js';

describe('InboxWorker, after the answer of the store was lost', () => {
  it('IN-25 registers at most once a second, however many receives fail', async () => {
    const bench = await started(new WorkerBench());
    let registered = 0;
    const register = bench.store.register.bind(bench.store);
    bench.store.register = (worker) => {
      registered += 1;
      return register(worker);
    };
    for (let second = 0; second < 5; second += 1) {
      for (let failure = 0; failure < 20; failure += 1) {
        bench.worker.reserve(['h'])?.start(null);
        await turns();
      }
      bench.runtime.advance(1000);
      await turns();
    }
    expect(registered).toBeGreaterThan(2);
    expect(registered).toBeLessThan(7);
    expect(await bench.assign('a')).toEqual(['h']);
  });

  it('IN-25 claims under a new id after a claim failed, by rejection or by exception, and logs it once', async () => {
    for (const broken of [
      () => Promise.reject(new Error('down')),
      () => {
        throw new Error('down');
      },
    ]) {
      const log = new CapturedLog();
      Logger.overrideLogger(log);
      const bench = await started(new WorkerBench());
      const claim = bench.store.claim.bind(bench.store);
      const workers = new Set<string>();
      bench.store.claim = (request) => {
        workers.add(request.worker);
        return broken();
      };
      await bench.receive('a');
      await turns();
      for (let second = 0; second < 10; second += 1) {
        bench.runtime.advance(1000);
        await turns();
        bench.worker.wake();
        await turns();
      }
      expect(workers.size).toBeGreaterThan(2);
      // It backs off, whatever wakes it.
      expect(workers.size).toBeLessThan(8);
      expect(log.matching(/could not be read: Error: down/)).toHaveLength(1);
      expect(log.matching(/can be read again/)).toHaveLength(0);
      bench.store.claim = claim;
      bench.runtime.advance(5000);
      await turns();
      expect(await bench.isDone('a')).toBe(true);
      expect(log.matching(/can be read again/)).toHaveLength(1);
      Logger.overrideLogger(false);
    }
  });

  it('IN-25 frees and runs again what a claim brought whose answer was lost', async () => {
    const bench = await started(new WorkerBench());
    const claim = bench.store.claim.bind(bench.store);
    bench.store.claim = async (request) => {
      bench.store.claim = claim;
      await claim(request);
      throw new Error('the connection was cut');
    };
    await bench.receive('a');
    await turns();
    bench.runtime.advance(1000);
    await turns();
    expect(await bench.delivery('a')).toMatchObject({ state: 'done', attempts: 1 });
    expect(bench.ids).toEqual(['a']);
  });

  it('IN-25 frees and runs again what a receive assigned whose answer was lost', async () => {
    const bench = await started(new WorkerBench());
    let end = () => {};
    bench.handle = () => new Promise<void>((resolve) => (end = resolve));
    await bench.assign('running');
    const reservation = bench.worker.reserve(['h'])!;
    const start = reservation.start.bind(reservation);
    bench.worker.reserve = () => ({ ...reservation, start: () => start(null) });
    await bench.assign('lost');
    await turns();
    expect(bench.ids).toEqual(['running']);
    expect(await bench.delivery('lost')).toMatchObject({ state: 'running' });
    // Its worker id retires when what is known to run under it has ended.
    bench.runtime.advance(1000);
    await turns();
    expect(await bench.delivery('lost')).toMatchObject({ state: 'running' });
    bench.handle = () => {};
    end();
    await turns();
    await turns();
    expect(await bench.delivery('running')).toMatchObject({ state: 'done', attempts: 1 });
    expect(await bench.delivery('lost')).toMatchObject({ state: 'done', attempts: 1 });
  });
});
