import { describe, expect, it } from '@jest/globals';
import { started, turns, WorkerBench } from '../../../../../test/support/inbox/worker-bench.js';

describe('InboxWorker.runDue()', () => {
  it('runDue does not end while something becomes due that its last claim did not see', async () => {
    const bench = new WorkerBench();
    bench.worker.start(false);
    await turns();
    const nextDueInMs = bench.store.nextDueInMs.bind(bench.store);
    bench.store.nextDueInMs = async (handlers) => {
      bench.store.nextDueInMs = nextDueInMs;
      const next = await nextDueInMs(handlers);
      await bench.receive('late');
      return next;
    };
    const run = bench.worker.runDue(60_000);
    await turns();
    expect(await run).toEqual({ done: 1, failed: 0, more: false });
  });

  it('runDue starts nothing after its time is up, and gives back what a claim brings then', async () => {
    const bench = new WorkerBench();
    bench.worker.start(false);
    await turns();
    await bench.receive('a');
    const claim = bench.store.claim.bind(bench.store);
    const { promise: answered, resolve: answer } = Promise.withResolvers<void>();
    bench.store.claim = async (request) => {
      const claimed = await claim(request);
      await answered;
      return claimed;
    };
    const run = bench.worker.runDue(1000);
    await turns();
    bench.runtime.advance(1000);
    expect(await run).toEqual({ done: 0, failed: 0, more: true });
    answer();
    await turns();
    expect(bench.ids).toEqual([]);
    expect(await bench.delivery('a')).toMatchObject({ state: 'pending', attempts: 0 });
    const next = bench.worker.runDue(1000);
    await turns();
    expect(await next).toEqual({ done: 1, failed: 0, more: false });
  });

  it('runDue runs what another process left behind, before it ends', async () => {
    const dead = await started(new WorkerBench({ leaseMs: 3000 }));
    dead.handle = () => new Promise(() => {});
    await dead.assign('a');
    await turns();
    dead.crash();
    const bench = new WorkerBench({ leaseMs: 3000 }, { of: dead });
    bench.worker.start(false);
    await turns();
    // The process was frozen meanwhile.
    bench.runtime.advance(10_000);
    expect(bench.worker.reserve(['h'])).toBeNull();
    const run = bench.worker.runDue(60_000);
    await turns();
    await turns();
    expect(bench.ids).toEqual(['a']);
    expect(await run).toEqual({ done: 1, failed: 0, more: false });
  });

  it('runDue ends at once in a process without handlers', async () => {
    const bench = await started(new WorkerBench({ background: false }, { handlers: {} }));
    let ended: unknown = null;
    void bench.worker.runDue(60_000).then((result) => (ended = result));
    await turns();
    expect(ended).toEqual({ done: 0, failed: 0, more: false });
  });
});
