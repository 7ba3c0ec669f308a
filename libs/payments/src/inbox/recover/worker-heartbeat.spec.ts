import { AsyncLocalStorage } from 'node:async_hooks';
import { describe, expect, it } from '@jest/globals';
import {
  pass,
  started,
  turns,
  WorkerBench,
} from '../../../../../test/support/inbox/worker-bench.js';

const DOWN = () => Promise.reject(new Error('down'));

describe('WorkerHeartbeat', () => {
  it('IN-14 keeps the deliveries of a handler that runs much longer than the lease', async () => {
    const bench = await started(new WorkerBench({ leaseMs: 3000, timeoutMs: 60_000 }));
    const other = await started(new WorkerBench({ leaseMs: 3000 }, { of: bench }));
    let end = () => {};
    bench.handle = () => new Promise<void>((resolve) => (end = resolve));
    await bench.assign('a');
    await pass(bench, 30);
    expect(bench.ran[0]!.context.signal.aborted).toBe(false);
    end();
    await turns();
    expect(await bench.delivery('a')).toMatchObject({ state: 'done', attempts: 1 });
    expect(other.ran).toEqual([]);
  });

  it('IN-13 keeps its deliveries although no heartbeat arrived for many leases, if nobody freed them', async () => {
    const bench = await started(new WorkerBench({ leaseMs: 1000 }));
    let end = () => {};
    bench.handle = () => new Promise<void>((resolve) => (end = resolve));
    await bench.assign('a');
    const heartbeat = bench.store.heartbeat.bind(bench.store);
    bench.store.heartbeat = DOWN;
    await pass(bench, 30);
    expect(bench.worker.reserve(['h'])).toBeNull();
    bench.store.heartbeat = heartbeat;
    await pass(bench, 6);
    expect(bench.ran[0]!.context.signal.aborted).toBe(false);
    end();
    await turns();
    expect(await bench.delivery('a')).toMatchObject({ state: 'done', attempts: 1 });
    expect(bench.worker.reserve(['h'])).not.toBeNull();
  });

  it('claims nothing after the process was stopped for longer than its lease, until a heartbeat has succeeded', async () => {
    const bench = await started(new WorkerBench({ leaseMs: 3000 }));
    const heartbeat = bench.store.heartbeat.bind(bench.store);
    let answer = () => {};
    bench.store.heartbeat = async (id) => {
      await new Promise<void>((resolve) => (answer = resolve));
      return heartbeat(id);
    };
    bench.runtime.advance(3000);
    expect(bench.worker.reserve(['h'])).toBeNull();
    await bench.receive('a');
    await turns();
    expect(bench.ids).toEqual([]);
    answer();
    await turns();
    expect(bench.ids).toEqual(['a']);
  });

  it.each(['claim', 'receive'] as const)(
    'IN-14 gives back, without running it, what a %s brings after the process was stopped for longer than its lease',
    async (operation) => {
      const bench = await started(new WorkerBench({ leaseMs: 3000 }));
      const heartbeat = bench.store.heartbeat.bind(bench.store);
      const { promise: renewed, resolve: renew } = Promise.withResolvers<void>();
      const { promise: answered, resolve: answer } = Promise.withResolvers<void>();
      const original = bench.store[operation].bind(bench.store) as (request: never) => unknown;
      Object.assign(bench.store, {
        [operation]: async (request: never) => {
          const result = await original(request);
          await answered;
          return result;
        },
      });
      const stored = operation === 'claim' ? bench.receive('a') : bench.assign('a');
      await turns();
      bench.store.heartbeat = async (id) => {
        await renewed;
        return heartbeat(id);
      };
      bench.runtime.advance(3000);
      answer();
      await stored;
      await turns();
      expect(bench.ids).toEqual([]);
      expect(await bench.delivery('a')).toMatchObject({ state: 'pending', attempts: 0 });
      renew();
      await turns();
      expect(await bench.delivery('a')).toMatchObject({ state: 'done', attempts: 1 });
    },
  );

  it('IN-25 frees what a live worker could not give back', async () => {
    const bench = await started(new WorkerBench({ leaseMs: 3000 }));
    const heartbeat = bench.store.heartbeat.bind(bench.store);
    const release = bench.store.release.bind(bench.store);
    const reservation = bench.worker.reserve(['h'])!;
    bench.store.heartbeat = DOWN;
    bench.store.release = DOWN;
    bench.runtime.advance(3000);
    bench.worker.reserve = () => reservation;
    await bench.assign('a');
    await turns();
    Object.assign(bench.store, { heartbeat, release });
    await pass(bench, 10);
    expect(await bench.delivery('a')).toMatchObject({ state: 'done', attempts: 1 });
  });

  it('starts what was assigned under an id that was replaced meanwhile', async () => {
    const bench = await started(new WorkerBench({ leaseMs: 3000 }));
    const reservation = bench.worker.reserve(['h'])!;
    bench.store.heartbeat = () => new Promise(() => {});
    bench.worker.reserve(['h'])!.start(null);
    bench.worker.reserve = () => reservation;
    await bench.assign('a');
    await turns();
    expect(bench.ids).toEqual(['a']);
  });

  it('runs suspects outside of the async context of the request that found the lease to be over', async () => {
    const requests = new AsyncLocalStorage<string>();
    const bench = await started(new WorkerBench({ leaseMs: 3000 }));
    bench.handle = () => new Promise(() => {});
    await bench.assign('a');
    bench.crash();
    const next = await started(new WorkerBench({ leaseMs: 3000 }, { of: bench }));
    const seen: unknown[] = [];
    next.handle = () => void seen.push(requests.getStore());
    bench.runtime.advance(2000);
    await turns();
    bench.runtime.passMonotonic(0);
    requests.run('a request', () => {
      // Timers are late, as after a pause of the process.
      (next.runtime as { monotonic(): number }).monotonic = (
        (now: number) => () =>
          now
      )(next.runtime.monotonic() + 3001);
      expect(next.worker.reserve(['h'])).toBeNull();
    });
    await turns();
    await turns();
    expect(seen).toEqual([undefined]);
  });

  it('sends a heartbeat each third of the lease, one at a time, whatever the number of runs', async () => {
    const bench = await started(new WorkerBench({ leaseMs: 3000 }));
    bench.handle = () => new Promise(() => {});
    for (let i = 0; i < 10; i += 1) await bench.assign(`e-${i}`);
    let beats = 0;
    const heartbeat = bench.store.heartbeat.bind(bench.store);
    bench.store.heartbeat = async (id) => {
      beats += 1;
      return heartbeat(id);
    };
    await pass(bench, 10);
    expect(beats).toBe(10);
  });

  it('registers under another id after each failure, which may have taken effect', async () => {
    const bench = new WorkerBench();
    const ids: string[] = [];
    const register = bench.store.register.bind(bench.store);
    bench.store.register = async (worker) => {
      ids.push(worker.id);
      const catalog = await register(worker);
      if (ids.length < 3) throw new Error('the answer was lost');
      return catalog;
    };
    bench.worker.start();
    await pass(bench, 5);
    expect(new Set(ids).size).toBe(3);
    expect(await bench.assign('a')).toEqual(['h']);
  });

  it('IN-23 IN-36 does not look at the wall clock', async () => {
    const bench = await started(new WorkerBench({ leaseMs: 3000 }));
    const other = await started(new WorkerBench({ leaseMs: 3000 }, { of: bench }));
    bench.handle = () => new Promise(() => {});
    await bench.assign('a');
    for (const jump of [3_600_000, -7_200_000]) {
      bench.runtime.setWallClock(jump);
      await pass(bench, 5);
    }
    expect(bench.ran[0]!.context.signal.aborted).toBe(false);
    expect(other.ran).toEqual([]);
  });
});
