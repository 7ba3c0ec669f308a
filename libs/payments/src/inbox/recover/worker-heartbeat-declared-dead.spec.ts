import { describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { CapturedLog } from '../../../../../test/support/log/captured-log.js';
import {
  pass,
  started,
  turns,
  WorkerBench,
} from '../../../../../test/support/inbox/worker-bench.js';
import type { Lease } from '../store/inbox-store.js';

const DOWN = () => Promise.reject(new Error('down'));

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

describe('a worker that was declared dead', () => {
  it('IN-12 IN-14 aborts the runs of a process that was declared dead, records nothing of them, and goes on', async () => {
    const log = new CapturedLog();
    const bench = await started(new WorkerBench({ leaseMs: 3000 }));
    Logger.overrideLogger(log);
    const other = await started(new WorkerBench({ leaseMs: 3000 }, { of: bench }));
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
      log.matching(/no heartbeat for 3000 ms, so 1 deliveries that ran here were freed/),
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

  it('IN-14 gives back, without running it, what a claim brings after the process was declared dead', async () => {
    const bench = await started(new WorkerBench({ leaseMs: 3000 }));
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

  it('IN-14 aborts the runs of an id that was replaced and is declared dead, once', async () => {
    const bench = await started(new WorkerBench({ leaseMs: 3000 }));
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
    const bench = await started(new WorkerBench({ leaseMs: 3000 }));
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
    const bench = await started(new WorkerBench({ leaseMs: 3000 }));
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
});
