import { describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { CapturedLog } from '../../../../test/support/captured.log.js';
import { turns, WorkerBench } from '../../../../test/support/worker.bench.js';

describe('DeliveryRun', () => {
  it('keeps a lease while its handler runs, and stops when it ends', async () => {
    const bench = new WorkerBench({ leaseMs: 3000 });
    let end = () => {};
    bench.handle = () => new Promise<void>((resolve) => (end = resolve));
    bench.worker.start();
    await bench.receive('a');
    await turns();
    for (let second = 0; second < 20; second += 1) {
      bench.runtime.advance(1000);
      await turns();
    }
    expect(bench.ran).toHaveLength(1);
    end();
    await turns();
    expect(await bench.isDone('a')).toBe(true);
    expect(bench.runtime.pending).toBe(1);
  });

  it('aborts a run whose lease was lost, and records nothing of it', async () => {
    const bench = new WorkerBench({ leaseMs: 3000, concurrency: 1 });
    let end = () => {};
    bench.handle = () => new Promise<void>((resolve) => (end = resolve));
    bench.worker.start();
    await bench.receive('a');
    await turns();
    // The event loop was blocked, and somebody else took over.
    bench.runtime.passMonotonic(0);
    bench.store.extend = async () => false;
    bench.runtime.advance(1000);
    await turns();
    const { signal } = bench.ran[0]!.context;
    expect(signal.aborted).toBe(true);
    expect(signal.reason).toMatchObject({
      name: 'AbortError',
      message: expect.stringMatching(/lease/),
    });
    bench.runtime.advance(2000);
    end();
    await turns();
    expect(await bench.delivery('a')).toMatchObject({ state: 'running', attempts: 2 });
  });

  it('aborts a run once the store could not be asked for a whole lease', async () => {
    const bench = new WorkerBench({ leaseMs: 3000 });
    bench.handle = () => new Promise<void>(() => {});
    bench.worker.start();
    await bench.receive('a');
    await turns();
    bench.store.extend = () => Promise.reject(new Error('down'));
    for (const aborted of [false, false, true]) {
      bench.runtime.advance(1000);
      await turns();
      expect(bench.ran[0]!.context.signal.aborted).toBe(aborted);
    }
  });

  it('puts to the dead letters what was begun as often as it may and never ended', async () => {
    const bench = new WorkerBench({ maxAttempts: 2, leaseMs: 1000 });
    await bench.receive('a');
    // Two processes died of it.
    for (const attempt of [1, 2]) {
      const request = { handlers: ['h'], limit: 1, leaseMs: 1000 };
      expect(await bench.store.claim(request)).toMatchObject([{ attempt }]);
      bench.runtime.advance(1000);
    }
    const watch = bench.settlements.watch('c', 'a');
    bench.worker.start();
    expect(await watch.failures(['h'])).toEqual(['h']);
    expect(bench.ran).toEqual([]);
    expect(await bench.delivery('a')).toMatchObject({
      state: 'dead',
      lastError: expect.stringMatching(/last of 2 attempts ended without a result/),
    });
  });

  it('settles a run again and again while the store is down, and reports it once it is settled', async () => {
    const bench = new WorkerBench({ leaseMs: 60_000 });
    const complete = bench.store.complete.bind(bench.store);
    let asked = 0;
    bench.store.complete = async (lease) => {
      asked += 1;
      if (asked < 4) throw new Error('down');
      return complete(lease);
    };
    bench.worker.start();
    await bench.receive('a');
    for (const [index, waitMs] of [100, 200, 400].entries()) {
      await turns();
      expect(asked).toBe(index + 1);
      bench.runtime.advance(waitMs);
    }
    await turns();
    expect(await bench.isDone('a')).toBe(true);
    expect(bench.ran).toHaveLength(1);
  });

  it('says so where a delivery was begun more often than it may be now', async () => {
    const bench = new WorkerBench({ maxAttempts: 2 });
    await bench.receive('a');
    for (let attempt = 1; attempt <= 3; attempt += 1) {
      const [lease] = await bench.store.claim({ handlers: ['h'], limit: 1, leaseMs: 1000 });
      await bench.store.fail(lease!, { error: 'no', retryInMs: 0 });
    }
    bench.worker.start();
    await turns();
    expect(bench.ran).toEqual([]);
    expect(await bench.delivery('a')).toMatchObject({
      state: 'dead',
      lastError: expect.stringMatching(/begun 3 times, and "worker.maxAttempts" is 2 now/),
    });
  });

  it('gives settling up when the lease may be over, reports what happened, and goes on', async () => {
    const bench = new WorkerBench({ leaseMs: 1000 });
    bench.store.complete = () => Promise.reject(new Error('down'));
    bench.worker.start();
    const watch = bench.settlements.watch('c', 'a');
    await bench.receive('a');
    for (const waitMs of [100, 200, 400]) {
      await turns();
      expect(watch.has('h')).toBe(false);
      bench.runtime.advance(waitMs);
    }
    expect(await watch.failures(['h'])).toEqual([]);
    await bench.receive('b');
    await turns();
    expect(bench.ran.map(({ id }) => id)).toEqual(['a', 'b']);
  });

  it('shows the handler a context it cannot change, and bytes whose change changes nothing', async () => {
    const bench = new WorkerBench();
    const claim = bench.store.claim.bind(bench.store);
    const kept: Buffer[] = [];
    bench.store.claim = async (request) => {
      const claimed = await claim(request);
      kept.push(...claimed.map(({ raw }) => raw));
      return claimed;
    };
    bench.handle = (_event, context) => {
      context.raw.fill(0);
    };
    bench.worker.start();
    await bench.receive('a');
    await turns();
    expect(Object.isFrozen(bench.ran[0]!.context)).toBe(true);
    expect(JSON.parse(kept[0]!.toString())).toMatchObject({ id: 'a' });
    expect(JSON.parse((await bench.store.find('c', 'a'))!.raw!.toString())).toMatchObject({
      id: 'a',
    });
  });

  it('asks for no more lease when its handler ended while it asked', async () => {
    const bench = new WorkerBench({ leaseMs: 3000 });
    let end = () => {};
    bench.handle = () => new Promise<void>((resolve) => (end = resolve));
    let answer = () => {};
    let asked = 0;
    bench.store.extend = async () => {
      asked += 1;
      await new Promise<void>((resolve) => (answer = resolve));
      return true;
    };
    bench.worker.start();
    await bench.receive('a');
    await turns();
    bench.runtime.advance(1000);
    end();
    await turns();
    answer();
    await turns();
    expect(bench.runtime.pending).toBe(1);
    bench.runtime.advance(60_000);
    await turns();
    expect(asked).toBe(1);
  });

  it('counts a lease from when it was last prolonged, where the store goes down late', async () => {
    const bench = new WorkerBench({ leaseMs: 3000 });
    bench.handle = () => new Promise<void>(() => {});
    bench.worker.start();
    await bench.receive('a');
    await turns();
    for (let second = 0; second < 10; second += 1) {
      bench.runtime.advance(1000);
      await turns();
    }
    bench.store.extend = () => Promise.reject(new Error('down'));
    for (const aborted of [false, false, true]) {
      bench.runtime.advance(1000);
      await turns();
      expect(bench.ran[0]!.context.signal.aborted).toBe(aborted);
    }
  });

  it('logs the stack of a failing handler at the first attempt and at the last, in between one line', async () => {
    const log = new CapturedLog();
    Logger.overrideLogger(log);
    const bench = new WorkerBench({ maxAttempts: 4, firstRetryMs: 1000, maxRetryMs: 1000 });
    bench.handle = () => Promise.reject(new RangeError('no such order'));
    bench.worker.start();
    await bench.receive('a');
    await turns();
    for (let attempt = 2; attempt <= 4; attempt += 1) {
      bench.runtime.advance(1000);
      await turns();
    }
    Logger.overrideLogger(['error']);
    const frames = log.lines.map((line) => /\n {4}at /.test(line));
    expect(frames).toEqual([true, false, false, true]);
    expect(log.lines[1]).toMatch(
      /^warn Delivery of event a \(company c\) to h failed \(attempt 2 of 4\); next attempt in \d+ ms\. RangeError: no such order PaymentInbox$/,
    );
    expect(log.lines[3]).toMatch(/^error .*\(attempt 4 of 4\) and is dead/);
  });
});
