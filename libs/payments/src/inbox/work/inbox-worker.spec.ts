import { describe, expect, it } from '@jest/globals';
import {
  delaySettlements,
  blockHandlers,
  recordClaims,
  started,
  turns,
  WorkerHarness,
} from '../../../../../test/support/inbox/worker-harness.js';

describe('InboxWorker', () => {
  it('the worker runs nothing before start(), then what was received before', async () => {
    const harness = new WorkerHarness();
    await harness.receive('a');
    await turns();
    expect(harness.ids).toEqual([]);
    await started(harness);
    expect(harness.ids).toEqual(['a']);
  });

  it('the worker claims and reserves nothing before it is registered, and retries the registration', async () => {
    const harness = new WorkerHarness();
    const register = harness.store.register.bind(harness.store);
    harness.store.register = () => Promise.reject(new Error('down'));
    const requests = recordClaims(harness);
    await started(harness);
    expect(await harness.assign('a')).toEqual([]);
    await turns();
    expect(requests).toEqual([]);
    harness.store.register = register;
    harness.runtime.advance(100);
    await turns();
    expect(harness.ids).toEqual(['a']);
    expect((await harness.store.catalog()).handlers).toMatchObject([
      { name: 'h', patterns: ['*'] },
    ]);
  });

  it('a delivery that is assigned on receipt runs without a claim', async () => {
    const harness = await started(new WorkerHarness());
    const requests = recordClaims(harness);
    expect(await harness.assign('a')).toEqual(['h']);
    await turns();
    expect(await harness.isDone('a')).toBe(true);
    expect(requests).toEqual([]);
  });

  it('reserve() takes slots only of handlers without backlog, and frees slots that are not assigned', async () => {
    const harness = await started(
      new WorkerHarness({ concurrency: 2 }, { handlers: { full: {}, free: {} } }),
    );
    const ends = blockHandlers(harness);
    await harness.assign('a', ['full']);
    await harness.assign('b', ['full']);
    const reservation = harness.worker.reserve(['full', 'free', 'unknown'])!;
    expect(reservation.handlers).toEqual(['free']);
    reservation.start([]);
    for (let again = 0; again < 5; again += 1) harness.worker.reserve(['free'])!.start([]);
    expect(harness.worker.reserve(['full'])).toBeNull();
    await harness.receive('c', null, ['full']);
    await turns();
    ends[0]!();
    await turns();
    // Event c was claimed as soon as a slot was free, before any later event.
    expect(harness.ids).toEqual(['a', 'b', 'c']);
    expect(harness.worker.reserve(['full'])).toBeNull();
    ends[1]!();
    ends[2]!();
    await turns();
    expect(harness.worker.reserve(['full'])!.handlers).toEqual(['full']);
  });

  it('IN-30 a handler runs up to its concurrency, and the next delivery as soon as one has ended', async () => {
    const harness = new WorkerHarness(
      { concurrency: 3 },
      { handlers: { h: {}, one: { concurrency: 1 } } },
    );
    const ends = blockHandlers(harness);
    await started(harness);
    for (let i = 0; i < 10; i += 1) await harness.receive(`e-${i}`, null, ['h']);
    for (let i = 0; i < 3; i += 1) await harness.receive(`o-${i}`, null, ['one']);
    await turns();
    expect(harness.ids.toSorted()).toEqual(['e-0', 'e-1', 'e-2', 'o-0']);
    for (let end = 0; end < 13; end += 1) {
      ends[end]!();
      await turns();
    }
    expect(harness.ran).toHaveLength(13);
    expect(await harness.isDone('e-9')).toBe(true);
  });

  it('IN-29 a handler runs while another handler has filled its own slots and has a backlog', async () => {
    const harness = new WorkerHarness({ concurrency: 2 }, { handlers: { hangs: {}, works: {} } });
    harness.handle = (_event, { handler }) =>
      handler === 'hangs' ? new Promise(() => {}) : undefined;
    await started(harness);
    for (let i = 0; i < 50; i += 1) await harness.receive(`h-${i}`, null, ['hangs']);
    await turns();
    for (let i = 0; i < 20; i += 1) {
      expect(await harness.assign(`w-${i}`, ['works'])).toEqual(['works']);
      await turns();
      expect(await harness.isDone(`w-${i}`, 'works')).toBe(true);
    }
    await harness.receive('pending', null, ['works']);
    await turns();
    expect(await harness.isDone('pending', 'works')).toBe(true);
  });

  it('a handler without free slots is not claimed for; after a backlog, all of its slots are', async () => {
    const harness = new WorkerHarness({ concurrency: 4 });
    const ends = blockHandlers(harness);
    const requests = recordClaims(harness);
    for (let i = 0; i < 8; i += 1) await harness.receive(`e-${i}`);
    await started(harness);
    expect(requests).toEqual([[{ handler: 'h', limit: 4 }]]);
    harness.worker.wake();
    await turns();
    expect(requests).toHaveLength(1);
    for (const end of ends.splice(0)) end();
    await turns();
    expect(requests.slice(1).flat()).toEqual([{ handler: 'h', limit: 4 }]);
    for (const end of ends.splice(0)) end();
    await turns();
    expect(harness.ran).toHaveLength(8);
    expect(harness.worker.reserve(['h'])).not.toBeNull();
  });

  it('half of the free slots stay free for new events while a claim is under way', async () => {
    const harness = await started(new WorkerHarness({ concurrency: 6 }));
    const claim = harness.store.claim.bind(harness.store);
    let respond = () => {};
    const limits: number[] = [];
    harness.store.claim = async (request) => {
      limits.push(...request.wanted.map(({ limit }) => limit));
      await new Promise<void>((resolve) => (respond = resolve));
      return claim(request);
    };
    harness.worker.wake();
    await turns();
    expect(limits).toEqual([3]);
    for (const id of ['a', 'b', 'c']) expect(await harness.assign(id)).toEqual(['h']);
    respond();
  });

  it('the worker claims while deliveries are settled, but leases at most twice its slots', async () => {
    const harness = new WorkerHarness({ concurrency: 5 });
    const settle = delaySettlements(harness);
    for (let i = 0; i < 20; i += 1) await harness.receive(`e-${i}`);
    await started(harness);
    expect(harness.ran).toHaveLength(10);
    settle();
    await turns();
    expect(harness.ran).toHaveLength(20);
  });

  it('IN-16 a delivery that waits for its ordering key runs as soon as the key is free', async () => {
    const harness = new WorkerHarness();
    const settle = delaySettlements(harness);
    await harness.receive('first', 'one key');
    await harness.receive('second', 'one key');
    await started(harness);
    expect(harness.ids).toEqual(['first']);
    settle();
    await turns();
    expect(harness.ids).toEqual(['first', 'second']);
  });

  it('a delivery is claimed for a reserved slot that was not assigned', async () => {
    const harness = await started(new WorkerHarness({ concurrency: 1 }));
    const reservation = harness.worker.reserve(['h'])!;
    await harness.receive('a');
    await turns();
    expect(harness.ids).toEqual([]);
    reservation.start([]);
    await turns();
    expect(harness.ids).toEqual(['a']);
  });

  it('reserve() takes no slot without a background worker', async () => {
    const harness = new WorkerHarness();
    harness.worker.start(false);
    await turns();
    await harness.worker.runDue(1000);
    expect(harness.worker.reserve(['h'])).toBeNull();
  });
});
