import { describe, expect, it } from '@jest/globals';
import { started, turns, WorkerHarness } from '../../../../../test/support/inbox/worker-harness.js';

describe('InboxWorker.runDue()', () => {
  it('runDue() does not resolve if a delivery became due after its last claim', async () => {
    const harness = new WorkerHarness();
    harness.worker.start(false);
    await turns();
    const nextDueInMs = harness.store.nextDueInMs.bind(harness.store);
    harness.store.nextDueInMs = async (handlers) => {
      harness.store.nextDueInMs = nextDueInMs;
      const next = await nextDueInMs(handlers);
      await harness.receive('late');
      return next;
    };
    const run = harness.worker.runDue(60_000);
    await turns();
    expect(await run).toEqual({ done: 1, failed: 0, more: false });
  });

  it('runDue() starts nothing after forMs, and releases deliveries that are claimed too late', async () => {
    const harness = new WorkerHarness();
    harness.worker.start(false);
    await turns();
    await harness.receive('a');
    const claim = harness.store.claim.bind(harness.store);
    const { promise: response, resolve: respond } = Promise.withResolvers<void>();
    harness.store.claim = async (request) => {
      const claimed = await claim(request);
      await response;
      return claimed;
    };
    const run = harness.worker.runDue(1000);
    await turns();
    harness.runtime.advance(1000);
    expect(await run).toEqual({ done: 0, failed: 0, more: true });
    respond();
    await turns();
    expect(harness.ids).toEqual([]);
    expect(await harness.delivery('a')).toMatchObject({ state: 'pending', attempts: 0 });
    const next = harness.worker.runDue(1000);
    await turns();
    expect(await next).toEqual({ done: 1, failed: 0, more: false });
  });

  it('runDue() runs deliveries of a dead process before it resolves', async () => {
    const dead = await started(await WorkerHarness.shared({ leaseMs: 3000 }));
    dead.handle = () => new Promise(() => {});
    await dead.assign('a');
    await turns();
    dead.crash();
    const harness = new WorkerHarness({ leaseMs: 3000 }, { of: dead });
    harness.worker.start(false);
    await turns();
    // The second process was frozen for longer than its lease.
    harness.runtime.advance(10_000);
    expect(harness.worker.reserve(['h'])).toBeNull();
    const run = harness.worker.runDue(60_000);
    await turns();
    await turns();
    expect(harness.ids).toEqual(['a']);
    expect(await run).toEqual({ done: 1, failed: 0, more: false });
  });

  it('runDue() resolves at once in a process without handlers', async () => {
    const harness = await started(new WorkerHarness({ background: false }, { handlers: {} }));
    let ended: unknown = null;
    void harness.worker.runDue(60_000).then((result) => (ended = result));
    await turns();
    expect(ended).toEqual({ done: 0, failed: 0, more: false });
  });
});
