import { describe, expect, it } from '@jest/globals';
import {
  pass,
  recordClaims,
  started,
  turns,
  WorkerHarness,
} from '../../../../../test/support/inbox/worker-harness.js';

describe('the drain of an InboxWorker', () => {
  it('IN-24 drain() releases deliveries of a claim that resolves during the drain, without a charge', async () => {
    const harness = new WorkerHarness();
    const claim = harness.store.claim.bind(harness.store);
    let respond = () => {};
    harness.store.claim = async (request) => {
      const claimed = await claim(request);
      await new Promise<void>((resolve) => (respond = resolve));
      return claimed;
    };
    await harness.receive('a');
    await started(harness);
    const drained = harness.worker.drain();
    await turns();
    respond();
    await drained;
    expect(harness.ids).toEqual([]);
    expect(await harness.delivery('a')).toMatchObject({ state: 'pending', attempts: 0 });
    expect(harness.runtime.pending).toBe(0);
  });

  it('IN-24 drain() releases deliveries that are assigned during the drain, without a charge', async () => {
    const harness = await started(new WorkerHarness());
    const reservation = harness.worker.reserve(['h']);
    const drained = harness.worker.drain();
    harness.worker.reserve = () => reservation;
    await harness.assign('a');
    await drained;
    expect(harness.ids).toEqual([]);
    expect(await harness.delivery('a')).toMatchObject({ state: 'pending', attempts: 0 });
    expect(harness.runtime.pending).toBe(0);
  });

  it('IN-24 drain() resolves in bounded time, although the store does not respond', async () => {
    const harness = new WorkerHarness({ drainMs: 50 });
    harness.store.claim = () => new Promise(() => {});
    harness.store.retire = () => new Promise(() => {});
    await started(harness);
    const drained = harness.worker.drain();
    for (const ms of [50, 500, 2000]) {
      harness.runtime.advance(ms);
      await turns();
    }
    await drained;
    expect(harness.runtime.pending).toBe(0);
  });

  it('IN-24 drain() ends claims and reservations, although a claim under way was woken', async () => {
    const harness = new WorkerHarness();
    let respond = () => {};
    let claims = 0;
    harness.store.claim = async () => {
      claims += 1;
      await new Promise<void>((resolve) => (respond = resolve));
      return [];
    };
    await started(harness);
    harness.worker.wake();
    const drained = harness.worker.drain();
    harness.worker.wake();
    expect(harness.worker.reserve(['h'])).toBeNull();
    await turns();
    respond();
    await drained;
    await turns();
    expect(claims).toBe(1);
  });

  it('IN-24 no claim is sent if drain() is called in the same turn of the event loop as wake()', async () => {
    const harness = await started(new WorkerHarness());
    const requests = recordClaims(harness);
    harness.worker.wake();
    await harness.worker.drain();
    await turns();
    expect(requests).toEqual([]);
  });

  it('IN-24 a delivery whose handler ignores its signal stays leased for the grace, then others run it', async () => {
    const harness = await started(await WorkerHarness.shared({ drainMs: 50 }));
    harness.handle = () => new Promise(() => {});
    await harness.receive('hangs', 'key');
    await harness.receive('next', 'key');
    await turns();
    const drained = harness.worker.drain();
    await turns();
    harness.runtime.advance(50);
    await turns();
    expect(harness.ran[0]!.context.signal.aborted).toBe(true);
    harness.runtime.advance(500);
    await drained;
    const other = await started(new WorkerHarness({ leaseMs: 3000 }, { of: harness }));
    for (let second = 0; second < 9; second += 1) {
      harness.runtime.advance(1000);
      await turns();
      expect(other.ids).toEqual([]);
    }
    await pass(harness, 2);
    expect(other.ids.toSorted()).toEqual(['hangs', 'next']);
    expect(await harness.delivery('hangs')).toMatchObject({ state: 'done', attempts: 1 });
  });

  it('IN-24 drain() leaves no timer if the store is down', async () => {
    const harness = await started(new WorkerHarness());
    harness.store.nextDueInMs = () => Promise.reject(new Error('down'));
    harness.worker.wake();
    await turns();
    await harness.worker.drain();
    expect(harness.runtime.pending).toBe(0);
  });

  it('IN-24 an attempt that ends within the grace is settled', async () => {
    const harness = await started(new WorkerHarness({ drainMs: 50 }));
    let end = () => {};
    harness.handle = () => new Promise<void>((resolve) => (end = resolve));
    await harness.assign('a');
    const drained = harness.worker.drain();
    await turns();
    harness.runtime.advance(50);
    await turns();
    harness.runtime.advance(500);
    await drained;
    end();
    await turns();
    expect(await harness.delivery('a')).toMatchObject({ state: 'done', attempts: 1 });
  });
});
