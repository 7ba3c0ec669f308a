import { AsyncLocalStorage } from 'node:async_hooks';
import { describe, expect, it } from '@jest/globals';
import {
  asked,
  started,
  turns,
  WorkerBench,
} from '../../../../../test/support/inbox/worker-bench.js';
import { fixed } from '../../events/retry-schedule.js';

describe('InboxWorker, when it is woken', () => {
  it('loses no wake-up that comes while it claims or asks when the next delivery is due', async () => {
    const bench = await started(new WorkerBench());
    const nextDueInMs = bench.store.nextDueInMs.bind(bench.store);
    let late: Promise<void> | null = null;
    bench.store.nextDueInMs = async (handlers) => {
      const next = await nextDueInMs(handlers);
      await (late ??= bench.receive('late'));
      return next;
    };
    bench.worker.wake();
    await turns();
    expect(bench.ids).toEqual(['late']);
    const claim = bench.store.claim.bind(bench.store);
    let later: Promise<void> | null = null;
    bench.store.claim = async (request) => {
      const claimed = await claim(request);
      await (later ??= bench.receive('later'));
      return claimed;
    };
    bench.worker.wake();
    await turns();
    expect(bench.ids).toEqual(['late', 'later']);
  });

  it('claims once for all calls that wake it in one turn of the event loop', async () => {
    const bench = await started(new WorkerBench());
    const requests = asked(bench);
    await Promise.all([bench.receive('a'), bench.receive('b'), bench.receive('c')]);
    await turns();
    expect(bench.ran).toHaveLength(3);
    expect(requests).toHaveLength(1);
  });

  it('sleeps until the next retry is due, without a timer for each delivery', async () => {
    const bench = await started(new WorkerBench({ leaseMs: 3_600_000 }));
    bench.handle = () => Promise.reject(new Error('no'));
    for (let i = 0; i < 20; i += 1) await bench.assign(`e-${i}`);
    await turns();
    // The sleep and the heartbeat.
    expect(bench.runtime.pending).toBe(2);
    expect(bench.runtime.nextIn).toBe(1500);
    bench.handle = () => {};
    bench.runtime.advance(1500);
    await turns();
    expect(await bench.isDone('e-19')).toBe(true);
  });

  it('runs a retry when it is due, although another handler fails later with a longer wait', async () => {
    const bench = await started(
      new WorkerBench(
        { leaseMs: 3_600_000 },
        { handlers: { soon: { retry: fixed([1000]) }, late: { retry: fixed([20_000]) } } },
      ),
    );
    bench.handle = () => Promise.reject(new Error('no'));
    await bench.assign('a', ['soon']);
    await bench.assign('b', ['late']);
    await turns();
    bench.handle = () => {};
    bench.runtime.advance(1000);
    await turns();
    expect(await bench.isDone('a', 'soon')).toBe(true);
    bench.runtime.advance(19_000);
    await turns();
    expect(await bench.isDone('b', 'late')).toBe(true);
  });

  it('runs what it claims outside of the async context of the request that woke it', async () => {
    const bench = await started(new WorkerBench());
    const requests = new AsyncLocalStorage<string>();
    const seen: unknown[] = [];
    bench.handle = () => void seen.push(requests.getStore());
    await requests.run('a request', () => bench.receive('a'));
    await turns();
    expect(seen).toEqual([undefined]);
  });

  it('looks again soon, but not at once, if something is due that its claims do not return', async () => {
    const bench = new WorkerBench();
    const requests = asked(bench);
    bench.store.nextDueInMs = async () => 0;
    await started(bench);
    expect(requests).toHaveLength(1);
    expect(bench.runtime.nextIn).toBe(100);
    bench.runtime.advance(100);
    await turns();
    expect(requests).toHaveLength(2);
  });

  it('does not read the store for an event that only other processes handle', async () => {
    const bench = await started(new WorkerBench());
    let reads = 0;
    const nextDueInMs = bench.store.nextDueInMs.bind(bench.store);
    bench.store.nextDueInMs = (handlers) => {
      reads += 1;
      return nextDueInMs(handlers);
    };
    bench.worker.wake(['theirs']);
    await turns();
    expect(reads).toBe(0);
    bench.worker.wake(['h']);
    await turns();
    expect(reads).toBe(1);
  });
});
