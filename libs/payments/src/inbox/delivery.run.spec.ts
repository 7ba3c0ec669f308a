import { describe, expect, it } from '@jest/globals';
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
});
