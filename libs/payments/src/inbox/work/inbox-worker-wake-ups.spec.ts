import { AsyncLocalStorage } from 'node:async_hooks';
import { describe, expect, it } from '@jest/globals';
import {
  recordClaims,
  started,
  turns,
  WorkerHarness,
} from '../../../../../test/support/inbox/worker-harness.js';
import { fixed } from '../../events/retry-schedule.js';

describe('InboxWorker: wake-ups', () => {
  it('IN-10 a worker that starts runs the deliveries that were stored before', async () => {
    const harness = new WorkerHarness();
    await harness.receive('before');
    await started(harness);
    expect(await harness.isDone('before')).toBe(true);
  });

  it('a wake-up during a claim, or during the query for the next due time, is not lost', async () => {
    const harness = await started(new WorkerHarness());
    const nextDueInMs = harness.store.nextDueInMs.bind(harness.store);
    let late: Promise<void> | null = null;
    harness.store.nextDueInMs = async (handlers) => {
      const next = await nextDueInMs(handlers);
      await (late ??= harness.receive('late'));
      return next;
    };
    harness.worker.wake();
    await turns();
    expect(harness.ids).toEqual(['late']);
    const claim = harness.store.claim.bind(harness.store);
    let later: Promise<void> | null = null;
    harness.store.claim = async (request) => {
      const claimed = await claim(request);
      await (later ??= harness.receive('later'));
      return claimed;
    };
    harness.worker.wake();
    await turns();
    expect(harness.ids).toEqual(['late', 'later']);
  });

  it('EX-14 a heartbeat causes a claim of deliveries, and none of polls', async () => {
    const harness = new WorkerHarness({ leaseMs: 20_000 });
    let wakeUps = 0;
    harness.worker.join({
      declaration: { name: 'polls', patterns: [] },
      idle: true,
      start: () => {},
      wake: () => {
        wakeUps += 1;
      },
      stop: () => Promise.resolve(),
      abandon: () => {},
    });
    await started(harness);
    const requests = recordClaims(harness);
    harness.runtime.advance(harness.runtime.nextIn!);
    await turns();
    expect([requests.length, wakeUps]).toEqual([1, 0]);
    harness.worker.wake();
    expect(wakeUps).toBe(1);
  });

  it('several wake-ups in one turn of the event loop cause one claim', async () => {
    const harness = await started(new WorkerHarness());
    const requests = recordClaims(harness);
    await Promise.all([harness.receive('a'), harness.receive('b'), harness.receive('c')]);
    await turns();
    expect(harness.ran).toHaveLength(3);
    expect(requests).toHaveLength(1);
  });

  it('the worker sleeps until the next retry is due, with one timer for all deliveries', async () => {
    const harness = await started(new WorkerHarness({ leaseMs: 3_600_000 }));
    harness.handle = () => Promise.reject(new Error('no'));
    for (let i = 0; i < 20; i += 1) await harness.assign(`e-${i}`);
    await turns();
    // There is one timer for the sleep, and one for the next heartbeat.
    expect(harness.runtime.pending).toBe(2);
    expect(harness.runtime.nextIn).toBe(1500);
    harness.handle = () => {};
    harness.runtime.advance(1500);
    await turns();
    expect(await harness.isDone('e-19')).toBe(true);
  });

  it('a retry runs when it is due, although a later failure of another handler waits longer', async () => {
    const harness = await started(
      new WorkerHarness(
        { leaseMs: 3_600_000 },
        { handlers: { soon: { retry: fixed([1000]) }, late: { retry: fixed([20_000]) } } },
      ),
    );
    harness.handle = () => Promise.reject(new Error('no'));
    await harness.assign('a', ['soon']);
    await harness.assign('b', ['late']);
    await turns();
    harness.handle = () => {};
    harness.runtime.advance(1000);
    await turns();
    expect(await harness.isDone('a', 'soon')).toBe(true);
    harness.runtime.advance(19_000);
    await turns();
    expect(await harness.isDone('b', 'late')).toBe(true);
  });

  it('claimed deliveries run outside of the async context of the request that woke the worker', async () => {
    const harness = await started(new WorkerHarness());
    const requests = new AsyncLocalStorage<string>();
    const seen: unknown[] = [];
    harness.handle = () => void seen.push(requests.getStore());
    await requests.run('a request', () => harness.receive('a'));
    await turns();
    expect(seen).toEqual([undefined]);
  });

  it('the worker claims again after 100 ms if a delivery is due that its claim did not return', async () => {
    const harness = new WorkerHarness();
    const requests = recordClaims(harness);
    harness.store.nextDueInMs = async () => 0;
    await started(harness);
    expect(requests).toHaveLength(1);
    expect(harness.runtime.nextIn).toBe(100);
    harness.runtime.advance(100);
    await turns();
    expect(requests).toHaveLength(2);
  });

  it('a wake-up for a handler of other processes does not query the store', async () => {
    const harness = await started(new WorkerHarness());
    let reads = 0;
    const nextDueInMs = harness.store.nextDueInMs.bind(harness.store);
    harness.store.nextDueInMs = (handlers) => {
      reads += 1;
      return nextDueInMs(handlers);
    };
    harness.worker.wake(['theirs']);
    await turns();
    expect(reads).toBe(0);
    harness.worker.wake(['h']);
    await turns();
    expect(reads).toBe(1);
  });
});
