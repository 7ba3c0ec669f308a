import { AsyncLocalStorage } from 'node:async_hooks';
import { describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { CapturedLog } from '../../../../test/support/log/captured-log.js';
import { turns, WorkerBench } from '../../../../test/support/inbox/worker-bench.js';
import type { Lease } from './inbox-store.js';

const DOWN = () => Promise.reject(new Error('down'));

async function started(...setup: ConstructorParameters<typeof WorkerBench>): Promise<WorkerBench> {
  const bench = new WorkerBench(...setup);
  bench.worker.start();
  await turns();
  return bench;
}

async function pass(bench: WorkerBench, seconds: number): Promise<void> {
  for (let second = 0; second < seconds; second += 1) {
    bench.runtime.advance(1000);
    await turns();
  }
}

/** Makes the next heartbeat report that the worker is dead. */
function declareDeadOnce({ store }: WorkerBench): void {
  const heartbeat = store.heartbeat.bind(store);
  let dead = true;
  store.heartbeat = async (id) => {
    const beat = await heartbeat(id);
    const alive = beat.alive && !dead;
    dead = false;
    return { ...beat, alive };
  };
}

describe('WorkerRegistration', () => {
  it('IN-14 keeps the deliveries of a handler that runs much longer than the lease', async () => {
    const bench = await started({ leaseMs: 3000, timeoutMs: 60_000 });
    const other = await started({ leaseMs: 3000 }, { of: bench });
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

  it('IN-12 IN-14 aborts the runs of a process that was declared dead, records nothing of them, and goes on', async () => {
    const log = new CapturedLog();
    const bench = await started({ leaseMs: 3000 });
    Logger.overrideLogger(log);
    const other = await started({ leaseMs: 3000 }, { of: bench });
    const ends: (() => void)[] = [];
    bench.handle = () => new Promise<void>((resolve) => ends.push(resolve));
    other.handle = bench.handle;
    await bench.assign('a');
    const heartbeat = bench.store.heartbeat.bind(bench.store);
    const [cutOff] = (await bench.store.find('c', 'a'))!.deliveries;
    expect(cutOff).toMatchObject({ state: 'running', attempts: 1 });
    // The heartbeats of the first process do not arrive.
    const ids = new Set<string>();
    let arrives = false;
    bench.store.heartbeat = (id) => {
      ids.add(id);
      return id === [...ids][0] && !arrives ? DOWN() : heartbeat(id);
    };
    await pass(bench, 6);
    Logger.overrideLogger(false);
    expect(other.ids).toEqual(['a']);
    // Heartbeats that fail abort nothing.
    expect(bench.ran[0]!.context.signal.aborted).toBe(false);
    arrives = true;
    Logger.overrideLogger(log);
    await pass(bench, 3);
    expect(bench.ran[0]!.context.signal).toMatchObject({
      aborted: true,
      reason: { name: 'AbortError', message: expect.stringMatching(/was freed/) },
    });
    expect(
      log.matching(/no heartbeat for 3000 ms, so 1 deliveries that it ran were freed/),
    ).toHaveLength(1);
    ends[0]!();
    await turns();
    Logger.overrideLogger(false);
    expect(await bench.delivery('a')).toMatchObject({ state: 'running' });
    ends[1]!();
    await turns();
    expect(await bench.delivery('a')).toMatchObject({
      state: 'done',
      attempts: 1,
      history: [{ outcome: 'lost' }, { outcome: 'done' }],
    });
    bench.handle = () => {};
    expect(await bench.assign('b')).toEqual(['h']);
    await turns();
    expect(await bench.isDone('b')).toBe(true);
  });

  it('IN-13 keeps its deliveries although no heartbeat arrived for many leases, if nobody freed them', async () => {
    const bench = await started({ leaseMs: 1000 });
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
    const bench = await started({ leaseMs: 3000 });
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

  it('IN-14 gives back, without running it, what a claim brings after the process was declared dead', async () => {
    const bench = await started({ leaseMs: 3000 });
    const claim = bench.store.claim.bind(bench.store);
    let answer = () => {};
    bench.store.claim = async (request) => {
      bench.store.claim = claim;
      const claimed = await claim(request);
      await new Promise<void>((resolve) => (answer = resolve));
      return claimed;
    };
    await bench.receive('a');
    await turns();
    declareDeadOnce(bench);
    await pass(bench, 1);
    answer();
    await turns();
    expect(await bench.delivery('a')).toMatchObject({ state: 'done', attempts: 1 });
    // Under the new id only.
    expect(bench.ran).toHaveLength(1);
    expect(bench.ran[0]!.context.signal.aborted).toBe(false);
  });

  it.each(['claim', 'receive'] as const)(
    'IN-14 gives back, without running it, what a %s brings after the process was stopped for longer than its lease',
    async (operation) => {
      const bench = await started({ leaseMs: 3000 });
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
    const bench = await started({ leaseMs: 3000 });
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
    const bench = await started({ leaseMs: 3000 });
    const reservation = bench.worker.reserve(['h'])!;
    bench.store.heartbeat = () => new Promise(() => {});
    bench.worker.reserve(['h'])!.start(null);
    bench.worker.reserve = () => reservation;
    await bench.assign('a');
    await turns();
    expect(bench.ids).toEqual(['a']);
  });

  it('IN-14 aborts the runs of an id that was replaced and is declared dead, once', async () => {
    const bench = await started({ leaseMs: 3000 });
    bench.handle = () => new Promise(() => {});
    await bench.assign('a');
    bench.worker.reserve(['h'])!.start(null);
    await pass(bench, 2);
    const heartbeat = bench.store.heartbeat.bind(bench.store);
    const asked: string[] = [];
    let former: string | undefined;
    bench.store.heartbeat = async (id) => {
      asked.push(id);
      former ??= id;
      const beat = await heartbeat(id);
      return { ...beat, alive: id !== former };
    };
    await pass(bench, 5);
    expect(bench.ran[0]!.context.signal.aborted).toBe(true);
    expect(asked.filter((id) => id === former)).toHaveLength(1);
    expect(bench.worker.reserve(['h'])).not.toBeNull();
  });

  it('IN-14 does not abort the signal of a handler that works on after its commit', async () => {
    const bench = await started({ leaseMs: 3000 });
    Object.assign(bench.store, {
      commit: async (lease: Lease, work: (tx: null) => unknown) => {
        const result = await work(null);
        return { result, nextDue: (await bench.store.complete(lease)).nextDue };
      },
    });
    bench.handle = async (_event, { commit }) => {
      await commit(() => {});
      await new Promise(() => {});
    };
    await bench.assign('a');
    await turns();
    expect(await bench.isDone('a')).toBe(true);
    declareDeadOnce(bench);
    await pass(bench, 2);
    expect(bench.ran[0]!.context.signal.aborted).toBe(false);
  });

  it('IN-25 frees what could not be given back', async () => {
    const bench = await started({ leaseMs: 3000 });
    const release = bench.store.release.bind(bench.store);
    const reservation = bench.worker.reserve(['h'])!;
    declareDeadOnce(bench);
    await pass(bench, 1);
    bench.store.release = async () => {
      bench.store.release = release;
      throw new Error('down');
    };
    bench.worker.reserve = () => reservation;
    await bench.assign('a');
    await turns();
    expect(bench.ran).toEqual([]);
    // The store has the old id still: nobody freed its deliveries, and it sends no heartbeats any more.
    await pass(bench, 5);
    expect(await bench.delivery('a')).toMatchObject({ state: 'done', attempts: 1 });
  });

  it('runs suspects outside of the async context of the request that found the lease to be over', async () => {
    const requests = new AsyncLocalStorage<string>();
    const bench = await started({ leaseMs: 3000 });
    bench.handle = () => new Promise(() => {});
    await bench.assign('a');
    bench.crash();
    const next = await started({ leaseMs: 3000 }, { of: bench });
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
    const bench = await started({ leaseMs: 3000 });
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
    const bench = await started({ leaseMs: 3000 });
    const other = await started({ leaseMs: 3000 }, { of: bench });
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
