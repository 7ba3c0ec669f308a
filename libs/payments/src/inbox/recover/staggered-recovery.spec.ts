import { describe, expect, it } from '@jest/globals';
import {
  CrashingProcesses,
  OPTIONS,
  withSuspect,
} from '../../../../../test/support/inbox/crashing-processes.js';
import { pass, turns, WorkerHarness } from '../../../../../test/support/inbox/worker-harness.js';

const INNOCENTS = ['i-1', 'i-2', 'i-3', 'i-4', 'i-5'];

/** Whether the worker has no slot for a new delivery. */
function isClosed({ worker }: WorkerHarness): boolean {
  const reservation = worker.reserve(['h']);
  reservation?.start([]);
  return reservation === null;
}

describe('StaggeredRecovery', () => {
  it('IN-19 a delivery that ends its process becomes dead, and no other delivery is charged', async () => {
    const processes = new CrashingProcesses();
    processes.start(null);
    await turns();
    for (const id of [...INNOCENTS, 'poison']) await processes.current.receive(id);
    await turns();
    expect(processes.ran[0]!.toSorted()).toEqual([...INNOCENTS, 'poison']);
    processes.current.crash();
    for (let life = 0; life < 20; life += 1) {
      const harness = processes.start();
      // Each handler takes 6 s.
      for (let round = 0; round < 10; round += 1) {
        await pass(harness, 6);
        for (const id of INNOCENTS) await processes.end(id);
      }
      if ((await harness.delivery('poison')).state === 'dead') break;
    }
    expect(await processes.first.delivery('poison')).toMatchObject({
      state: 'dead',
      attempts: 5,
      lastError: expect.stringMatching(/last of 4 attempts ended without a result/),
    });
    for (const id of INNOCENTS) {
      expect(await processes.first.delivery(id)).toMatchObject({ state: 'done', attempts: 1 });
    }
    // Each attempt that was charged ran alone.
    expect(processes.nextTo.slice(-4)).toEqual([[], [], [], []]);
  });

  it('IN-19 suspects run one at a time, in parallel to other deliveries', async () => {
    const processes = new CrashingProcesses();
    processes.start(null);
    await turns();
    for (const id of INNOCENTS) await processes.current.receive(id);
    await turns();
    processes.current.crash();
    const harness = processes.start(null);
    await pass(harness, 8);
    expect(processes.ran[1]).toEqual(['i-1']);
    expect(await harness.assign('new')).toEqual(['h']);
    expect(processes.ran[1]).toEqual(['i-1', 'new']);
    await processes.end('i-1');
    expect(processes.ran[1]).toEqual(['i-1', 'new', 'i-2']);
    for (const id of INNOCENTS) await processes.end(id);
    expect(await harness.isDone('i-5')).toBe(true);
    expect(await harness.delivery('i-5')).toMatchObject({ attempts: 1 });
  });

  it('IN-19 claims and reservations stop until a suspect with two crashes has run alone', async () => {
    const processes = await withSuspect();
    const harness = processes.start(null);
    await turns();
    await harness.assign('running');
    while (!isClosed(harness)) await pass(harness, 1);
    // The suspect waits for the attempt that runs.
    expect(processes.ran[2]).toEqual(['running']);
    await harness.receive('pending');
    await turns();
    expect(processes.ran[2]).toEqual(['running']);
    await processes.end('running');
    expect(processes.ran[2]).toEqual(['running', 'suspect']);
    expect(harness.worker.reserve(['h'])).toBeNull();
    await processes.end('suspect');
    expect(processes.ran[2]).toEqual(['running', 'suspect', 'pending']);
    await processes.end('pending');
    expect(harness.worker.reserve(['h'])).not.toBeNull();
    expect(await harness.delivery('suspect')).toMatchObject({ state: 'done', attempts: 1 });
  });

  it('IN-19 an attempt that hangs delays other deliveries by 1 s at first while a suspect waits to run alone', async () => {
    const processes = await withSuspect();
    const harness = processes.start(null);
    await turns();
    await harness.assign('hangs');
    while (!isClosed(harness)) await pass(harness, 1);
    await harness.receive('pending');
    await pass(harness, 1);
    expect(processes.ran[2]).toEqual(['hangs', 'pending']);
    await processes.end('pending');
    // Each wait is twice as long as the wait before, and as long as the time after it in which other deliveries run.
    let closedFor = 0;
    for (let second = 0; second < 60; second += 1) {
      await pass(harness, 1);
      if (isClosed(harness)) closedFor += 1;
    }
    expect(closedFor).toBeGreaterThan(20);
    expect(closedFor).toBeLessThan(40);
    expect(processes.ran[2]).toEqual(['hangs', 'pending']);
    await processes.end('hangs');
    await pass(harness, 60);
    expect(processes.ran[2]).toEqual(['hangs', 'pending', 'suspect']);
  });

  it('IN-19 the pause after a suspect that ran alone is as long as the suspect ran', async () => {
    const processes = new CrashingProcesses({ leaseMs: 30_000 });
    for (const received of [['s-1', 's-2'], [], []]) {
      const harness = processes.start(null);
      await turns();
      for (const id of received) await harness.receive(id);
      await turns();
      harness.crash();
      await pass(harness, 45);
    }
    const harness = processes.start(null);
    await turns();
    expect(processes.ran.slice(1)).toEqual([['s-1'], ['s-2'], [expect.anything()]]);
    const [first] = processes.ran[3]!;
    await pass(harness, 3);
    expect(processes.ran[3]).toEqual([first]);
    await processes.end(first!);
    expect(await harness.assign('other')).toEqual(['h']);
    await processes.end('other');
    await pass(harness, 2);
    expect(processes.ran[3]).toEqual([first, 'other']);
    await pass(harness, 2);
    expect(processes.ran[3]!.toSorted()).toEqual(['other', 's-1', 's-2']);
  });

  it('IN-25 a suspect is freed if the response to its claim was lost', async () => {
    const processes = new CrashingProcesses();
    processes.start(null);
    await turns();
    await processes.current.receive('suspect');
    await turns();
    processes.current.crash();
    const harness = processes.start(null);
    const claimSuspect = harness.store.claimSuspect.bind(harness.store);
    harness.store.claimSuspect = async (request) => {
      const suspect = await claimSuspect(request);
      if (suspect === null) return null;
      harness.store.claimSuspect = claimSuspect;
      throw new Error('the connection was cut');
    };
    await pass(harness, 15);
    expect(processes.ran[1]).toEqual(['suspect']);
    await processes.end('suspect');
    expect(await harness.delivery('suspect')).toMatchObject({ state: 'done', attempts: 1 });
  });

  it('IN-30 a claim does not take the slot of a suspect that is claimed at the same time', async () => {
    const processes = new CrashingProcesses({ concurrency: 1 });
    processes.start(null);
    await turns();
    await processes.current.receive('suspect');
    await turns();
    processes.current.crash();
    const harness = processes.start(null);
    const claimSuspect = harness.store.claimSuspect.bind(harness.store);
    harness.store.claimSuspect = async (request) => {
      harness.store.claimSuspect = claimSuspect;
      const suspect = await claimSuspect(request);
      await harness.receive('new');
      await turns();
      return suspect;
    };
    await pass(harness, 8);
    expect(processes.ran[1]).toEqual(['suspect']);
    await processes.end('suspect');
    expect(processes.ran[1]).toEqual(['suspect', 'new']);
  });

  it('suspects that cannot be claimed stop other deliveries less and less often', async () => {
    const harness = new WorkerHarness(OPTIONS);
    const heartbeat = harness.store.heartbeat.bind(harness.store);
    harness.store.heartbeat = async (id) => ({ ...(await heartbeat(id)), suspects: true });
    let alone = 0;
    harness.store.claimSuspect = async (request) => {
      if (request.alone) alone += 1;
      return null;
    };
    harness.worker.start();
    await pass(harness, 100);
    expect(alone).toBeGreaterThan(3);
    expect(alone).toBeLessThan(20);
  });

  it('a pending delivery gets the slot that was taken for a suspect of another handler', async () => {
    const handlers = { g: { concurrency: 1 }, h: { concurrency: 1 } };
    const first = new WorkerHarness(OPTIONS, { handlers });
    first.handle = () => new Promise(() => {});
    first.worker.start();
    await turns();
    await first.receive('suspect', null, ['h']);
    await turns();
    first.crash();
    const harness = new WorkerHarness({ ...OPTIONS, leaseMs: 60_000 }, { of: first, handlers });
    const claimSuspect = harness.store.claimSuspect.bind(harness.store);
    harness.store.claimSuspect = async (request) => {
      harness.store.claimSuspect = claimSuspect;
      const suspect = await claimSuspect(request);
      await harness.receive('pending', null, ['g']);
      await turns();
      return suspect;
    };
    harness.handle = ({ id }) => (id === 'suspect' ? new Promise(() => {}) : undefined);
    harness.runtime.advance(8000);
    harness.worker.start();
    await turns();
    await turns();
    expect(harness.ids).toEqual(['suspect', 'pending']);
    expect(await harness.isDone('pending', 'g')).toBe(true);
  });

  it('IN-24 drain() does not wait for the pause after a suspect that ran alone', async () => {
    const processes = await withSuspect();
    const harness = processes.start(null);
    await pass(harness, 8);
    expect(processes.ran[2]).toEqual(['suspect']);
    let drained = false;
    void harness.worker.drain().then(() => (drained = true));
    await processes.end('suspect');
    expect(drained).toBe(true);
    expect(await harness.delivery('suspect')).toMatchObject({ state: 'done', attempts: 1 });
  });

  it('IN-24 drain() ends the wait to run a suspect alone', async () => {
    const processes = await withSuspect();
    const harness = processes.start(null);
    await turns();
    await harness.assign('running');
    await pass(harness, 8);
    const drained = harness.worker.drain();
    await processes.end('running');
    await drained;
    expect(processes.ran[2]).toEqual(['running']);
    expect(await harness.delivery('suspect')).toMatchObject({ state: 'pending', attempts: 0 });
  });
});
