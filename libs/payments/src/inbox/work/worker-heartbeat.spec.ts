import { AsyncLocalStorage } from 'node:async_hooks';
import { describe, expect, it } from '@jest/globals';
import {
  pass,
  started,
  turns,
  WorkerHarness,
} from '../../../../../test/support/inbox/worker-harness.js';

const DOWN = () => Promise.reject(new Error('down'));

describe('WorkerHeartbeat', () => {
  it('IN-14 a handler that runs much longer than the lease keeps its delivery', async () => {
    const harness = await started(await WorkerHarness.shared({ leaseMs: 3000, timeoutMs: 60_000 }));
    const other = await started(new WorkerHarness({ leaseMs: 3000 }, { of: harness }));
    let end = () => {};
    harness.handle = () => new Promise<void>((resolve) => (end = resolve));
    await harness.assign('a');
    await pass(harness, 30);
    expect(harness.ran[0]!.context.signal.aborted).toBe(false);
    end();
    await turns();
    expect(await harness.delivery('a')).toMatchObject({ state: 'done', attempts: 1 });
    expect(other.ran).toEqual([]);
  });

  it('IN-13 a worker without heartbeats for many leases keeps deliveries that no process freed', async () => {
    const harness = await started(await WorkerHarness.shared({ leaseMs: 1000 }));
    let end = () => {};
    harness.handle = () => new Promise<void>((resolve) => (end = resolve));
    await harness.assign('a');
    const heartbeat = harness.store.heartbeat.bind(harness.store);
    harness.store.heartbeat = DOWN;
    await pass(harness, 30);
    expect(harness.worker.reserve(['h'])).toBeNull();
    harness.store.heartbeat = heartbeat;
    await pass(harness, 6);
    expect(harness.ran[0]!.context.signal.aborted).toBe(false);
    end();
    await turns();
    expect(await harness.delivery('a')).toMatchObject({ state: 'done', attempts: 1 });
    expect(harness.worker.reserve(['h'])).not.toBeNull();
  });

  it('a process that was frozen for longer than its lease claims nothing before a heartbeat succeeds', async () => {
    const harness = await started(new WorkerHarness({ leaseMs: 3000 }));
    const heartbeat = harness.store.heartbeat.bind(harness.store);
    let respond = () => {};
    harness.store.heartbeat = async (id) => {
      await new Promise<void>((resolve) => (respond = resolve));
      return heartbeat(id);
    };
    harness.runtime.advance(3000);
    expect(harness.worker.reserve(['h'])).toBeNull();
    await harness.receive('a');
    await turns();
    expect(harness.ids).toEqual([]);
    respond();
    await turns();
    expect(harness.ids).toEqual(['a']);
  });

  it.each(['claim', 'receive'] as const)(
    'IN-14 deliveries that a %s leases while the process is frozen beyond its lease are released, not run',
    async (operation) => {
      const harness = await started(new WorkerHarness({ leaseMs: 3000 }));
      const heartbeat = harness.store.heartbeat.bind(harness.store);
      const { promise: renewed, resolve: renew } = Promise.withResolvers<void>();
      const { promise: response, resolve: respond } = Promise.withResolvers<void>();
      const original = harness.store[operation].bind(harness.store) as (request: never) => unknown;
      Object.assign(harness.store, {
        [operation]: async (request: never) => {
          const result = await original(request);
          await response;
          return result;
        },
      });
      const stored = operation === 'claim' ? harness.receive('a') : harness.assign('a');
      await turns();
      harness.store.heartbeat = async (id) => {
        await renewed;
        return heartbeat(id);
      };
      harness.runtime.advance(3000);
      respond();
      await stored;
      await turns();
      expect(harness.ids).toEqual([]);
      expect(await harness.delivery('a')).toMatchObject({ state: 'pending', attempts: 0 });
      renew();
      await turns();
      expect(await harness.delivery('a')).toMatchObject({ state: 'done', attempts: 1 });
    },
  );

  it('IN-25 a delivery that a live worker could not release is freed', async () => {
    const harness = await started(await WorkerHarness.shared({ leaseMs: 3000 }));
    const heartbeat = harness.store.heartbeat.bind(harness.store);
    const release = harness.store.release.bind(harness.store);
    const reservation = harness.worker.reserve(['h'])!;
    harness.store.heartbeat = DOWN;
    harness.store.release = DOWN;
    harness.runtime.advance(3000);
    harness.worker.reserve = () => reservation;
    await harness.assign('a');
    await turns();
    Object.assign(harness.store, { heartbeat, release });
    await pass(harness, 10);
    expect(await harness.delivery('a')).toMatchObject({ state: 'done', attempts: 1 });
  });

  it('a delivery that was assigned under an id that was replaced meanwhile starts', async () => {
    const harness = await started(new WorkerHarness({ leaseMs: 3000 }));
    const reservation = harness.worker.reserve(['h'])!;
    harness.store.heartbeat = () => new Promise(() => {});
    harness.worker.reserve(['h'])!.start(null);
    harness.worker.reserve = () => reservation;
    await harness.assign('a');
    await turns();
    expect(harness.ids).toEqual(['a']);
  });

  it('suspects run outside of the async context of the request that caused the heartbeat', async () => {
    const requests = new AsyncLocalStorage<string>();
    const harness = await started(await WorkerHarness.shared({ leaseMs: 3000 }));
    harness.handle = () => new Promise(() => {});
    await harness.assign('a');
    harness.crash();
    const next = await started(new WorkerHarness({ leaseMs: 3000 }, { of: harness }));
    const seen: unknown[] = [];
    next.handle = () => void seen.push(requests.getStore());
    harness.runtime.advance(2000);
    await turns();
    harness.runtime.passMonotonic(0);
    requests.run('a request', () => {
      // The clock advances without timers, as if the process had been frozen.
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

  it('IN-12 heartbeats are sent every quarter of the lease and 2 ms, one at a time, for any number of attempts', async () => {
    const harness = await started(new WorkerHarness({ leaseMs: 4 * 998 }));
    harness.handle = () => new Promise(() => {});
    for (let i = 0; i < 10; i += 1) await harness.assign(`e-${i}`);
    let beats = 0;
    const heartbeat = harness.store.heartbeat.bind(harness.store);
    harness.store.heartbeat = async (id) => {
      beats += 1;
      return heartbeat(id);
    };
    await pass(harness, 10);
    expect(beats).toBe(10);
  });

  it('each retry of a registration uses a new id, because a failed try may have taken effect', async () => {
    const harness = new WorkerHarness();
    const ids: string[] = [];
    const register = harness.store.register.bind(harness.store);
    harness.store.register = async (worker) => {
      ids.push(worker.id);
      const catalog = await register(worker);
      if (ids.length < 3) throw new Error('the response was lost');
      return catalog;
    };
    harness.worker.start();
    await pass(harness, 5);
    expect(new Set(ids).size).toBe(3);
    expect(await harness.assign('a')).toEqual(['h']);
  });

  it('IN-23 IN-36 a jump of the wall clock has no effect on heartbeats and due times', async () => {
    const harness = await started(await WorkerHarness.shared({ leaseMs: 3000 }));
    const other = await started(new WorkerHarness({ leaseMs: 3000 }, { of: harness }));
    harness.handle = () => new Promise(() => {});
    await harness.assign('a');
    for (const jump of [3_600_000, -7_200_000]) {
      harness.runtime.setWallClock(jump);
      await pass(harness, 5);
    }
    expect(harness.ran[0]!.context.signal.aborted).toBe(false);
    expect(other.ran).toEqual([]);
  });
});
