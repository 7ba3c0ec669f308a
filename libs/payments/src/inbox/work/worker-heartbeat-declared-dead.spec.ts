import { describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { CapturedLog } from '../../../../../test/support/log/captured-log.js';
import {
  pass,
  started,
  turns,
  WorkerHarness,
} from '../../../../../test/support/inbox/worker-harness.js';
import type { Lease } from '../store/inbox-store.js';

const DOWN = () => Promise.reject(new Error('down'));

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
  it('IN-12 IN-14 a process that was declared dead aborts its attempts, stores no outcome, and goes on', async () => {
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
      log.matching(/no heartbeat for 3000 ms, so 1 deliveries that ran here were freed/),
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

  it('IN-14 the attempts of a replaced id that is declared dead are aborted once', async () => {
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

  it('IN-14 the signal of a handler that goes on after its commit is not aborted', async () => {
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

  it('IN-25 a delivery that could not be released is freed', async () => {
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
