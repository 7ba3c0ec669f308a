import { AsyncLocalStorage } from 'node:async_hooks';
import { describe, expect, it } from '@jest/globals';
import {
  blockHandlers,
  pass,
  started,
  turns,
  WorkerHarness,
} from '../../../../../test/support/inbox/worker-harness.js';
import { Logger } from '@nestjs/common';
import { CapturedLog } from '../../../../../test/support/log/captured-log.js';
import type { Lease } from '../store/inbox-store.js';

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

  it('IN-13 a worker that sent no heartbeats for many lease times keeps its deliveries if no process has freed them', async () => {
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
    'IN-14 if the process freezes for longer than its lease during a %s, the leased deliveries are released and do not run',
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

  it('a delivery starts although its worker id was replaced while the store assigned the delivery', async () => {
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

  it('IN-12 the worker sends one heartbeat every quarter of the lease plus 2 ms, however many attempts run', async () => {
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

  it('each retry of a registration uses a new id, because a failed registration may have taken effect', async () => {
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

/** Makes the next heartbeat report that the worker is dead. */
function declareDeadOnce({ store }: WorkerHarness): void {
  const heartbeat = store.heartbeat.bind(store);
  let dead = true;
  store.heartbeat = async (id) => {
    const beat = await heartbeat(id);
    const alive = beat.alive && !dead;
    dead = false;
    return { ...beat, alive };
  };
}

describe('a worker that was declared dead', () => {
  it('IN-12 IN-14 a process that was declared dead aborts its attempts, stores no outcome of these attempts, and continues', async () => {
    const log = new CapturedLog();
    const harness = await started(await WorkerHarness.shared({ leaseMs: 3000 }));
    Logger.overrideLogger(log);
    const other = await started(new WorkerHarness({ leaseMs: 3000 }, { of: harness }));
    const ends: (() => void)[] = [];
    harness.handle = () => new Promise<void>((resolve) => ends.push(resolve));
    other.handle = harness.handle;
    await harness.assign('a');
    const heartbeat = harness.store.heartbeat.bind(harness.store);
    const [cutOff] = (await harness.store.find('c', 'a'))!.deliveries;
    expect(cutOff).toMatchObject({ state: 'running', attempts: 1 });
    // The heartbeats of the first process do not reach the store.
    const ids = new Set<string>();
    let arrives = false;
    harness.store.heartbeat = (id) => {
      ids.add(id);
      return id === [...ids][0] && !arrives ? DOWN() : heartbeat(id);
    };
    await pass(harness, 6);
    Logger.overrideLogger(false);
    expect(other.ids).toEqual(['a']);
    // A failed heartbeat aborts no signal.
    expect(harness.ran[0]!.context.signal.aborted).toBe(false);
    arrives = true;
    Logger.overrideLogger(log);
    await pass(harness, 3);
    expect(harness.ran[0]!.context.signal).toMatchObject({
      aborted: true,
      reason: { name: 'AbortError', message: expect.stringMatching(/was freed/) },
    });
    expect(
      log.matching(/no heartbeat for 3000 ms, so it lost the leases of 1 deliveries/),
    ).toHaveLength(1);
    ends[0]!();
    await turns();
    Logger.overrideLogger(false);
    expect(await harness.delivery('a')).toMatchObject({ state: 'running' });
    ends[1]!();
    await turns();
    expect(await harness.delivery('a')).toMatchObject({
      state: 'done',
      attempts: 1,
      history: [{ outcome: 'lost' }, { outcome: 'done' }],
    });
    harness.handle = () => {};
    expect(await harness.assign('b')).toEqual(['h']);
    await turns();
    expect(await harness.isDone('b')).toBe(true);
  });

  it('IN-14 deliveries that are claimed after the process was declared dead are released, not run', async () => {
    const harness = await started(new WorkerHarness({ leaseMs: 3000 }));
    const claim = harness.store.claim.bind(harness.store);
    let respond = () => {};
    harness.store.claim = async (request) => {
      harness.store.claim = claim;
      const claimed = await claim(request);
      await new Promise<void>((resolve) => (respond = resolve));
      return claimed;
    };
    await harness.receive('a');
    await turns();
    declareDeadOnce(harness);
    await pass(harness, 1);
    respond();
    await turns();
    expect(await harness.delivery('a')).toMatchObject({ state: 'done', attempts: 1 });
    // The delivery ran only after a claim under the new id.
    expect(harness.ran).toHaveLength(1);
    expect(harness.ran[0]!.context.signal.aborted).toBe(false);
  });

  it('IN-14 if a worker id is replaced and then declared dead, its attempts are aborted once', async () => {
    const harness = await started(new WorkerHarness({ leaseMs: 3000 }));
    harness.handle = () => new Promise(() => {});
    await harness.assign('a');
    harness.worker.reserve(['h'])!.start(null);
    await pass(harness, 2);
    const heartbeat = harness.store.heartbeat.bind(harness.store);
    const asked: string[] = [];
    let former: string | undefined;
    harness.store.heartbeat = async (id) => {
      asked.push(id);
      former ??= id;
      const beat = await heartbeat(id);
      return { ...beat, alive: id !== former };
    };
    await pass(harness, 5);
    expect(harness.ran[0]!.context.signal.aborted).toBe(true);
    expect(asked.filter((id) => id === former)).toHaveLength(1);
    expect(harness.worker.reserve(['h'])).not.toBeNull();
  });

  it('IN-14 the signal of a handler that still runs after its commit is not aborted', async () => {
    const harness = await started(new WorkerHarness({ leaseMs: 3000 }));
    Object.assign(harness.store, {
      commit: async (lease: Lease, work: (tx: null) => unknown) => {
        const result = await work(null);
        return { result, nextDue: (await harness.store.complete(lease)).nextDue };
      },
    });
    harness.handle = async (_event, { commit }) => {
      await commit(() => {});
      await new Promise(() => {});
    };
    await harness.assign('a');
    await turns();
    expect(await harness.isDone('a')).toBe(true);
    declareDeadOnce(harness);
    await pass(harness, 2);
    expect(harness.ran[0]!.context.signal.aborted).toBe(false);
  });

  it('IN-25 a delivery is freed if a worker that was declared dead could not release it', async () => {
    const harness = await started(await WorkerHarness.shared({ leaseMs: 3000 }));
    const release = harness.store.release.bind(harness.store);
    const reservation = harness.worker.reserve(['h'])!;
    declareDeadOnce(harness);
    await pass(harness, 1);
    harness.store.release = async () => {
      harness.store.release = release;
      throw new Error('down');
    };
    harness.worker.reserve = () => reservation;
    await harness.assign('a');
    await turns();
    expect(harness.ran).toEqual([]);
    // The store still has the old id: no process freed its deliveries, and it gets no heartbeats any more.
    await pass(harness, 5);
    expect(await harness.delivery('a')).toMatchObject({ state: 'done', attempts: 1 });
  });
});

describe('WorkerHeartbeat: lost responses of the store', () => {
  it('IN-25 failed receives cause at most one registration per second', async () => {
    const harness = await started(new WorkerHarness());
    let registered = 0;
    const register = harness.store.register.bind(harness.store);
    harness.store.register = (worker) => {
      registered += 1;
      return register(worker);
    };
    for (let second = 0; second < 5; second += 1) {
      for (let failure = 0; failure < 20; failure += 1) {
        harness.worker.reserve(['h'])?.start(null);
        await turns();
      }
      harness.runtime.advance(1000);
      await turns();
    }
    expect(registered).toBeGreaterThan(2);
    expect(registered).toBeLessThan(7);
    expect(await harness.assign('a')).toEqual(['h']);
  });

  it('IN-25 after a failed claim, the worker claims under a new id and logs one line', async () => {
    for (const broken of [
      () => Promise.reject(new Error('down')),
      () => {
        throw new Error('down');
      },
    ]) {
      const log = new CapturedLog();
      Logger.overrideLogger(log);
      const harness = await started(new WorkerHarness());
      const claim = harness.store.claim.bind(harness.store);
      const workers = new Set<string>();
      harness.store.claim = (request) => {
        workers.add(request.workerId);
        return broken();
      };
      await harness.receive('a');
      await turns();
      for (let second = 0; second < 10; second += 1) {
        harness.runtime.advance(1000);
        await turns();
        harness.worker.wake();
        await turns();
      }
      expect(workers.size).toBeGreaterThan(2);
      // The worker backs off, even if it is woken.
      expect(workers.size).toBeLessThan(8);
      expect(log.matching(/could not be read: Error: down/)).toHaveLength(1);
      expect(log.matching(/can be read again/)).toHaveLength(0);
      harness.store.claim = claim;
      harness.runtime.advance(5000);
      await turns();
      expect(await harness.isDone('a')).toBe(true);
      expect(log.matching(/can be read again/)).toHaveLength(1);
      Logger.overrideLogger(false);
    }
  });

  it('IN-25 deliveries of a claim whose response was lost are freed and run', async () => {
    const harness = await started(await WorkerHarness.shared());
    const claim = harness.store.claim.bind(harness.store);
    harness.store.claim = async (request) => {
      harness.store.claim = claim;
      await claim(request);
      throw new Error('the connection was cut');
    };
    await harness.receive('a');
    await turns();
    harness.runtime.advance(1000);
    await turns();
    expect(await harness.delivery('a')).toMatchObject({ state: 'done', attempts: 1 });
    expect(harness.ids).toEqual(['a']);
  });

  it('IN-25 deliveries that were assigned by a receive whose response was lost are freed and run', async () => {
    const harness = await started(await WorkerHarness.shared());
    let end = () => {};
    harness.handle = () => new Promise<void>((resolve) => (end = resolve));
    await harness.assign('running');
    const reservation = harness.worker.reserve(['h'])!;
    const start = reservation.start.bind(reservation);
    harness.worker.reserve = () => ({ ...reservation, start: () => start(null) });
    await harness.assign('lost');
    await turns();
    expect(harness.ids).toEqual(['running']);
    expect(await harness.delivery('lost')).toMatchObject({ state: 'running' });
    // The worker id retires when the attempts that are known to use it have ended.
    harness.runtime.advance(1000);
    await turns();
    expect(await harness.delivery('lost')).toMatchObject({ state: 'running' });
    harness.handle = () => {};
    end();
    await turns();
    await turns();
    expect(await harness.delivery('running')).toMatchObject({ state: 'done', attempts: 1 });
    expect(await harness.delivery('lost')).toMatchObject({ state: 'done', attempts: 1 });
  });

  it('IN-25 a worker id that becomes unused during a heartbeat retires right after this heartbeat, not at the next heartbeat', async () => {
    const harness = await started(await WorkerHarness.shared());
    const reservation = harness.worker.reserve(['h'])!;
    const start = reservation.start.bind(reservation);
    harness.worker.reserve = () => ({ ...reservation, start: () => start(null) });
    await harness.assign('lost');
    await pass(harness, 2);
    expect(await harness.delivery('lost')).toMatchObject({ state: 'done', attempts: 1 });
  });

  it('IN-16 a worker id does not retire during a claim, because the deliveries of the claim would be freed and run twice', async () => {
    const harness = await started(await WorkerHarness.shared());
    const { store } = harness;
    const claim = store.claim.bind(store);
    const retire = store.retire.bind(store);
    let respond = () => {};
    store.claim = async (request) => {
      store.claim = claim;
      const claimed = await claim(request);
      await new Promise<void>((resolve) => (respond = resolve));
      return claimed;
    };
    // The claim took effect before the retirement, and its response arrives first.
    store.retire = async (id, graceMs) => {
      await retire(id, graceMs);
      respond();
      await turns();
    };
    blockHandlers(harness);
    await harness.receive('a');
    await turns();
    harness.worker.reserve(['h'])!.start(null);
    await pass(harness, 12);
    respond();
    await pass(harness, 12);
    expect(harness.ids).toEqual(['a']);
    expect(await harness.delivery('a')).toMatchObject({ state: 'running', attempts: 1 });
  });
});
