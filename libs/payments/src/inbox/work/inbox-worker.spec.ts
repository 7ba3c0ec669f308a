import { describe, expect, it } from '@jest/globals';
import {
  blockHandlers,
  delaySettlements,
  pass,
  recordClaims,
  started,
  turns,
  WorkerHarness,
} from '../../../../../test/support/inbox/worker-harness.js';
import { AsyncLocalStorage } from 'node:async_hooks';
import { fixed } from '../../events/retry-schedule.js';

describe('InboxWorker', () => {
  it('the worker runs no delivery before start(), and then runs the deliveries that were received before', async () => {
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

  it('reserve() takes slots only of handlers without a backlog, and slots without an assigned delivery are freed', async () => {
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

  it('IN-30 a handler runs as many attempts as its concurrency, and the next attempt starts as soon as one ends', async () => {
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

  it('a handler without free slots causes no claim, and after a claim that filled all slots, the next claim requests all slots', async () => {
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

  it('half of the free slots stay free for new events during a claim', async () => {
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

  it('the worker claims while deliveries are settled, but leases at most twice as many deliveries as it has slots', async () => {
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

  it('a reserved slot without an assigned delivery is used for a claim', async () => {
    const harness = await started(new WorkerHarness({ concurrency: 1 }));
    const reservation = harness.worker.reserve(['h'])!;
    await harness.receive('a');
    await turns();
    expect(harness.ids).toEqual([]);
    reservation.start([]);
    await turns();
    expect(harness.ids).toEqual(['a']);
  });

  it('reserve() takes no slot if the worker does not run in the background', async () => {
    const harness = new WorkerHarness();
    harness.worker.start(false);
    await turns();
    await harness.worker.runDue(1000);
    expect(harness.worker.reserve(['h'])).toBeNull();
  });
});

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

  it('EX-14 a heartbeat causes a claim of deliveries, but no claim of polls', async () => {
    const harness = new WorkerHarness({ leaseMs: 20_000 });
    let wakeUps = 0;
    harness.worker.join({
      declaration: { name: 'polls', patterns: [] },
      idle: true,
      wake: () => {
        wakeUps += 1;
      },
      stop: () => Promise.resolve(),
      abandon: () => {},
    });
    await started(harness);
    wakeUps = 0;
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

  it('a retry runs when it is due, even if after it another handler schedules a retry with a longer wait', async () => {
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

  it('if a delivery is still due after a claim, because the claim did not return it, the worker claims again after 100 ms', async () => {
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

  it('a wake-up for a handler that only other processes register causes no query of the store', async () => {
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

describe('the drain of an InboxWorker', () => {
  it('IN-24 drain() releases deliveries of a claim that resolves during the drain, and counts no attempt', async () => {
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

  it('IN-24 drain() releases deliveries that are assigned during the drain, and counts no attempt', async () => {
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

  it('IN-24 no claim and no reservation follows drain(), even if the worker was woken during a claim', async () => {
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

  it('IN-24 if a handler ignores its signal, its delivery stays leased for the grace period, and other processes run it later', async () => {
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

  it('IN-24 an attempt that ends within the grace period of drain() is settled', async () => {
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

describe('InboxWorker.runDue()', () => {
  it('runDue() also runs a delivery that became due after the last claim of runDue()', async () => {
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
