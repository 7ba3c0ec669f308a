import { describe, expect, it } from '@jest/globals';
import { Host, OPTIONS, withSuspect } from '../../../../../test/support/inbox/crashing-host.js';
import { pass, turns, WorkerBench } from '../../../../../test/support/inbox/worker-bench.js';

const INNOCENTS = ['i-1', 'i-2', 'i-3', 'i-4', 'i-5'];

describe('StaggeredRecovery', () => {
  it('IN-19 runs what a process died of until it is dead, and charges nobody else an attempt', async () => {
    const host = new Host();
    host.start(null);
    await turns();
    for (const id of [...INNOCENTS, 'poison']) await host.process.receive(id);
    await turns();
    expect(host.ran[0]!.toSorted()).toEqual([...INNOCENTS, 'poison']);
    host.process.crash();
    for (let life = 0; life < 20; life += 1) {
      const bench = host.start();
      // Handlers of 6 s.
      for (let round = 0; round < 10; round += 1) {
        await pass(bench, 6);
        for (const id of INNOCENTS) await host.end(id);
      }
      if ((await bench.delivery('poison')).state === 'dead') break;
    }
    expect(await host.first.delivery('poison')).toMatchObject({
      state: 'dead',
      attempts: 5,
      lastError: expect.stringMatching(/last of 4 attempts ended without a result/),
    });
    for (const id of INNOCENTS) {
      expect(await host.first.delivery(id)).toMatchObject({ state: 'done', attempts: 1 });
    }
    // Each run that was charged was alone.
    expect(host.nextTo.slice(-4)).toEqual([[], [], [], []]);
  });

  it('IN-19 runs suspects one at a time, next to other deliveries', async () => {
    const host = new Host();
    host.start(null);
    await turns();
    for (const id of INNOCENTS) await host.process.receive(id);
    await turns();
    host.process.crash();
    const bench = host.start(null);
    await pass(bench, 8);
    expect(host.ran[1]).toEqual(['i-1']);
    expect(await bench.assign('new')).toEqual(['h']);
    expect(host.ran[1]).toEqual(['i-1', 'new']);
    await host.end('i-1');
    expect(host.ran[1]).toEqual(['i-1', 'new', 'i-2']);
    for (const id of INNOCENTS) await host.end(id);
    expect(await bench.isDone('i-5')).toBe(true);
    expect(await bench.delivery('i-5')).toMatchObject({ attempts: 1 });
  });

  it('IN-19 stops claims and reservations until a suspect with two crashes has run alone, then goes on', async () => {
    const host = await withSuspect();
    const bench = host.start(null);
    await turns();
    await bench.assign('running');
    await pass(bench, 8);
    // It waits for what runs.
    expect(host.ran[2]).toEqual(['running']);
    expect(bench.worker.reserve(['h'])).toBeNull();
    await bench.receive('pending');
    await turns();
    expect(host.ran[2]).toEqual(['running']);
    await host.end('running');
    expect(host.ran[2]).toEqual(['running', 'suspect']);
    expect(bench.worker.reserve(['h'])).toBeNull();
    await host.end('suspect');
    expect(host.ran[2]).toEqual(['running', 'suspect', 'pending']);
    await host.end('pending');
    expect(bench.worker.reserve(['h'])).not.toBeNull();
    expect(await bench.delivery('suspect')).toMatchObject({ state: 'done', attempts: 1 });
  });

  it('IN-19 pauses after each suspect that ran alone for as long as it ran, then runs the next', async () => {
    const host = new Host({ leaseMs: 30_000 });
    for (const received of [['s-1', 's-2'], [], []]) {
      const bench = host.start(null);
      await turns();
      for (const id of received) await bench.receive(id);
      await turns();
      bench.crash();
      await pass(bench, 45);
    }
    const bench = host.start(null);
    await turns();
    expect(host.ran.slice(1)).toEqual([['s-1'], ['s-2'], [expect.anything()]]);
    const [first] = host.ran[3]!;
    await pass(bench, 3);
    expect(host.ran[3]).toEqual([first]);
    await host.end(first!);
    expect(await bench.assign('other')).toEqual(['h']);
    await host.end('other');
    await pass(bench, 2);
    expect(host.ran[3]).toEqual([first, 'other']);
    await pass(bench, 2);
    expect(host.ran[3]!.toSorted()).toEqual(['other', 's-1', 's-2']);
  });

  it('IN-25 frees a suspect whose claim was lost', async () => {
    const host = new Host();
    host.start(null);
    await turns();
    await host.process.receive('suspect');
    await turns();
    host.process.crash();
    const bench = host.start(null);
    const claimSuspect = bench.store.claimSuspect.bind(bench.store);
    bench.store.claimSuspect = async (request) => {
      const suspect = await claimSuspect(request);
      if (suspect === null) return null;
      bench.store.claimSuspect = claimSuspect;
      throw new Error('the connection was cut');
    };
    await pass(bench, 15);
    expect(host.ran[1]).toEqual(['suspect']);
    await host.end('suspect');
    expect(await bench.delivery('suspect')).toMatchObject({ state: 'done', attempts: 1 });
  });

  it('IN-30 leaves a suspect its place while it is claimed next to another claim', async () => {
    const host = new Host({ concurrency: 1 });
    host.start(null);
    await turns();
    await host.process.receive('suspect');
    await turns();
    host.process.crash();
    const bench = host.start(null);
    const claimSuspect = bench.store.claimSuspect.bind(bench.store);
    bench.store.claimSuspect = async (request) => {
      bench.store.claimSuspect = claimSuspect;
      const suspect = await claimSuspect(request);
      await bench.receive('new');
      await turns();
      return suspect;
    };
    await pass(bench, 8);
    expect(host.ran[1]).toEqual(['suspect']);
    await host.end('suspect');
    expect(host.ran[1]).toEqual(['suspect', 'new']);
  });

  it('stops other work less and less often for suspects that it cannot claim', async () => {
    const bench = new WorkerBench(OPTIONS);
    const heartbeat = bench.store.heartbeat.bind(bench.store);
    bench.store.heartbeat = async (id) => ({ ...(await heartbeat(id)), suspects: true });
    let alone = 0;
    bench.store.claimSuspect = async (request) => {
      if (request.alone) alone += 1;
      return null;
    };
    bench.worker.start();
    await pass(bench, 100);
    expect(alone).toBeGreaterThan(3);
    expect(alone).toBeLessThan(20);
  });

  it('runs what is pending at a place that was kept for a suspect of another handler', async () => {
    const handlers = { g: { concurrency: 1 }, h: { concurrency: 1 } };
    const first = new WorkerBench(OPTIONS, { handlers });
    first.handle = () => new Promise(() => {});
    first.worker.start();
    await turns();
    await first.receive('suspect', null, ['h']);
    await turns();
    first.crash();
    const bench = new WorkerBench({ ...OPTIONS, leaseMs: 60_000 }, { of: first, handlers });
    const claimSuspect = bench.store.claimSuspect.bind(bench.store);
    bench.store.claimSuspect = async (request) => {
      bench.store.claimSuspect = claimSuspect;
      const suspect = await claimSuspect(request);
      await bench.receive('pending', null, ['g']);
      await turns();
      return suspect;
    };
    bench.handle = ({ id }) => (id === 'suspect' ? new Promise(() => {}) : undefined);
    bench.runtime.advance(8000);
    bench.worker.start();
    await turns();
    await turns();
    expect(bench.ids).toEqual(['suspect', 'pending']);
    expect(await bench.isDone('pending', 'g')).toBe(true);
  });

  it('IN-24 drains without the pause after a suspect that ran alone', async () => {
    const host = await withSuspect();
    const bench = host.start(null);
    await pass(bench, 8);
    expect(host.ran[2]).toEqual(['suspect']);
    let drained = false;
    void bench.worker.drain().then(() => (drained = true));
    await host.end('suspect');
    expect(drained).toBe(true);
    expect(await bench.delivery('suspect')).toMatchObject({ state: 'done', attempts: 1 });
  });

  it('IN-24 drains while it waits to run a suspect alone', async () => {
    const host = await withSuspect();
    const bench = host.start(null);
    await turns();
    await bench.assign('running');
    await pass(bench, 8);
    const drained = bench.worker.drain();
    await host.end('running');
    await drained;
    expect(host.ran[2]).toEqual(['running']);
    expect(await bench.delivery('suspect')).toMatchObject({ state: 'pending', attempts: 0 });
  });
});
