import { describe, expect, it } from '@jest/globals';
import {
  CrashingProcesses,
  OPTIONS,
} from '../../../../../test/support/inbox/crashing-processes.js';
import { pass, turns, WorkerHarness } from '../../../../../test/support/inbox/worker-harness.js';

const INNOCENTS = Array.from({ length: 10 }, (_, n) => `i-${n + 1}`);

describe('suspects of an InboxWorker (deliveries whose last attempt ended with the death of its process)', () => {
  it('IN-19 a delivery that ends its process becomes dead, and no attempt of other deliveries is counted', async () => {
    const processes = await CrashingProcesses.open();
    const ids = [...INNOCENTS.slice(0, 5), 'poison', ...INNOCENTS.slice(5)];
    await processes.crashWhileRunning(...ids);
    expect(processes.ran[0]).toEqual(ids);
    for (let life = 0; life < 20; life += 1) {
      const harness = processes.start();
      // Each handler takes 6 s.
      for (let round = 0; round < 11; round += 1) {
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
    // The first crash happened while all deliveries ran, and is not counted. In four crashes, only this suspect ran.
    expect(processes.ran.filter((ran) => ran.includes('poison'))).toHaveLength(5);
  });

  it('IN-19 suspects run one at a time, in parallel to other deliveries', async () => {
    const processes = await CrashingProcesses.open();
    await processes.crashWhileRunning(...INNOCENTS);
    const harness = processes.start(null);
    await pass(harness, 8);
    expect(processes.ran[1]).toEqual(['i-1']);
    expect(await harness.assign('new')).toEqual(['h']);
    expect(processes.ran[1]).toEqual(['i-1', 'new']);
    await processes.end('i-1');
    expect(processes.ran[1]).toEqual(['i-1', 'new', 'i-2']);
    for (const id of INNOCENTS) await processes.end(id);
    expect(await harness.delivery('i-10')).toMatchObject({ state: 'done', attempts: 1 });
  });

  it('IN-25 a suspect is freed if the response to its claim was lost', async () => {
    const processes = await CrashingProcesses.open();
    await processes.crashWhileRunning('suspect');
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
    const processes = await CrashingProcesses.open({ concurrency: 1 });
    await processes.crashWhileRunning('suspect');
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

  it('IN-19 a suspect runs, even if a suspect of another handler ends every process that runs it', async () => {
    const handlers = { g: {}, h: {} };
    const first = await WorkerHarness.shared(OPTIONS, { handlers });
    const start = (harness: WorkerHarness): void => {
      harness.handle = () => new Promise(() => {});
      harness.worker.start();
    };
    start(first);
    await turns();
    await first.receive('poison', null, ['g']);
    await first.receive('innocent', null, ['h']);
    await turns();
    first.crash();
    const ran: string[] = [];
    for (const chance of [0, 0.5]) {
      first.runtime.chance = chance;
      // The lease of the previous process ends before the next one starts.
      first.runtime.advance(4000);
      const harness = new WorkerHarness(OPTIONS, { of: first, handlers });
      start(harness);
      await pass(harness, 8);
      harness.crash();
      ran.push(...harness.ids);
    }
    expect(ran).toEqual(['poison', 'innocent']);
  });

  it('a pending delivery gets the slot that was taken for a suspect of another handler', async () => {
    const handlers = { g: { concurrency: 1 }, h: { concurrency: 1 } };
    const first = await WorkerHarness.shared(OPTIONS, { handlers });
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

  it('IN-25 if the worker has claimed a suspect and then another claim fails, the suspect is freed and its attempt is not counted', async () => {
    const processes = await CrashingProcesses.open();
    await processes.crashWhileRunning('suspect');
    const harness = processes.start(null);
    const claim = harness.store.claim.bind(harness.store);
    const claimSuspect = harness.store.claimSuspect.bind(harness.store);
    harness.store.claimSuspect = async (request) => {
      const suspect = await claimSuspect(request);
      if (suspect !== null) {
        harness.store.claimSuspect = claimSuspect;
        harness.store.claim = () => {
          harness.store.claim = claim;
          throw new Error('the connection was cut');
        };
      }
      return suspect;
    };
    await pass(harness, 15);
    expect(processes.ran[1]).toEqual(['suspect']);
    await processes.end('suspect');
    expect(await harness.delivery('suspect')).toMatchObject({ state: 'done', attempts: 1 });
  });

  it('IN-19 a suspect gets the next free slot of a handler with a backlog', async () => {
    const processes = await CrashingProcesses.open({ concurrency: 1 });
    await processes.crashWhileRunning('suspect');
    const harness = processes.start(null);
    await turns();
    for (const id of ['a', 'b', 'c']) await harness.receive(id);
    await pass(harness, 8);
    expect(processes.ran[1]).toEqual(['a']);
    await processes.end('a');
    expect(processes.ran[1]).toEqual(['a', 'suspect']);
    await processes.end('suspect');
    expect(processes.ran[1]).toEqual(['a', 'suspect', 'b']);
  });

  it('if a claim found no suspect, the worker claims suspects again only after the next heartbeat', async () => {
    const harness = new WorkerHarness(OPTIONS);
    let heartbeats = 0;
    let claims = 0;
    const heartbeat = harness.store.heartbeat.bind(harness.store);
    harness.store.heartbeat = async (id) => {
      heartbeats += 1;
      return { ...(await heartbeat(id)), suspects: true };
    };
    harness.store.claimSuspect = async () => {
      claims += 1;
      return null;
    };
    harness.worker.start();
    for (let second = 0; second < 20; second += 1) {
      await pass(harness, 1);
      await harness.receive(`other-${second}`);
      await turns();
    }
    expect(harness.ids).toHaveLength(20);
    expect(claims).toBe(heartbeats);
  });

  it('IN-24 drain() waits for the running suspect, and starts no other suspect', async () => {
    const processes = await CrashingProcesses.open();
    await processes.crashWhileRunning('s-1', 's-2');
    const harness = processes.start(null);
    await pass(harness, 8);
    let drained = false;
    void harness.worker.drain().then(() => (drained = true));
    await turns();
    expect(drained).toBe(false);
    await processes.end('s-1');
    expect(drained).toBe(true);
    expect(processes.ran[1]).toEqual(['s-1']);
    expect(await harness.delivery('s-2')).toMatchObject({ state: 'pending', attempts: 0 });
  });

  it('IN-24 if a drain begins while the worker claims a suspect, the worker claims no other deliveries', async () => {
    const harness = new WorkerHarness(OPTIONS);
    const { promise, resolve } = Promise.withResolvers<null>();
    const heartbeat = harness.store.heartbeat.bind(harness.store);
    harness.store.heartbeat = async (id) => ({ ...(await heartbeat(id)), suspects: true });
    let claimsSuspect = false;
    harness.store.claimSuspect = async () => {
      claimsSuspect = true;
      return promise;
    };
    harness.worker.start();
    await pass(harness, 8);
    expect(claimsSuspect).toBe(true);
    const draining = harness.worker.drain();
    let claims = 0;
    const claim = harness.store.claim.bind(harness.store);
    harness.store.claim = async (request) => {
      claims += 1;
      return claim(request);
    };
    resolve(null);
    await draining;
    expect(claims).toBe(0);
  });
});
