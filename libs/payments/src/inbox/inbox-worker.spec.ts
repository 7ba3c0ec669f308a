import { AsyncLocalStorage } from 'node:async_hooks';
import { describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { CapturedLog } from '../../../../test/support/captured.log.js';
import { turns, WorkerBench } from '../../../../test/support/worker.bench.js';
import { fixed } from '../events/retry-schedule.js';
import type { ClaimRequest } from './inbox-store.js';

/** The store completes nothing until the returned function is called, like one that is slow. */
function settlesLate({ store }: WorkerBench): () => void {
  const { promise: settled, resolve } = Promise.withResolvers<void>();
  const complete = store.complete.bind(store);
  store.complete = async (lease) => {
    await settled;
    return complete(lease);
  };
  return resolve;
}

/** Makes the handlers of a bench wait until the test ends them. */
function waits(bench: WorkerBench): (() => void)[] {
  const ends: (() => void)[] = [];
  bench.handle = () => new Promise<void>((resolve) => ends.push(resolve));
  return ends;
}

/** Collects what a worker asks its store for. */
function asked({ store }: WorkerBench): ClaimRequest['wanted'][] {
  const requests: ClaimRequest['wanted'][] = [];
  const claim = store.claim.bind(store);
  store.claim = (request) => {
    requests.push(request.wanted);
    return claim(request);
  };
  return requests;
}

async function started(bench: WorkerBench): Promise<WorkerBench> {
  bench.worker.start();
  await turns();
  return bench;
}

describe('InboxWorker', () => {
  it('runs what was received before it started, and nothing before that', async () => {
    const bench = new WorkerBench();
    await bench.receive('a');
    await turns();
    expect(bench.ids).toEqual([]);
    await started(bench);
    expect(bench.ids).toEqual(['a']);
  });

  it('claims and reserves nothing before it is registered, and registers when the store is up', async () => {
    const bench = new WorkerBench();
    const register = bench.store.register.bind(bench.store);
    bench.store.register = () => Promise.reject(new Error('down'));
    const requests = asked(bench);
    await started(bench);
    expect(await bench.assign('a')).toEqual([]);
    await turns();
    expect(requests).toEqual([]);
    bench.store.register = register;
    bench.runtime.advance(100);
    await turns();
    expect(bench.ids).toEqual(['a']);
    expect((await bench.store.catalog()).handlers).toMatchObject([{ name: 'h', patterns: ['*'] }]);
  });

  it('runs what is assigned on receipt without a claim', async () => {
    const bench = await started(new WorkerBench());
    const requests = asked(bench);
    expect(await bench.assign('a')).toEqual(['h']);
    await turns();
    expect(await bench.isDone('a')).toBe(true);
    expect(requests).toEqual([]);
  });

  it('reserves a place only of handlers that have one free and no backlog, and frees what is not assigned', async () => {
    const bench = await started(
      new WorkerBench({ concurrency: 2 }, { handlers: { full: {}, free: {} } }),
    );
    const ends = waits(bench);
    await bench.assign('a', ['full']);
    await bench.assign('b', ['full']);
    const reservation = bench.worker.reserve(['full', 'free', 'unknown'])!;
    expect(reservation.handlers).toEqual(['free']);
    reservation.start([]);
    for (let again = 0; again < 5; again += 1) bench.worker.reserve(['free'])!.start([]);
    expect(bench.worker.reserve(['full'])).toBeNull();
    await bench.receive('c', null, ['full']);
    await turns();
    ends[0]!();
    await turns();
    // It was claimed: a new event does not go before it.
    expect(bench.ids).toEqual(['a', 'b', 'c']);
    expect(bench.worker.reserve(['full'])).toBeNull();
    ends[1]!();
    ends[2]!();
    await turns();
    expect(bench.worker.reserve(['full'])!.handlers).toEqual(['full']);
  });

  it('IN-30 runs as many at once of each handler as its concurrency, and the next as soon as one ends', async () => {
    const bench = new WorkerBench(
      { concurrency: 3 },
      { handlers: { h: {}, one: { concurrency: 1 } } },
    );
    const ends = waits(bench);
    await started(bench);
    for (let i = 0; i < 10; i += 1) await bench.receive(`e-${i}`, null, ['h']);
    for (let i = 0; i < 3; i += 1) await bench.receive(`o-${i}`, null, ['one']);
    await turns();
    expect(bench.ids.toSorted()).toEqual(['e-0', 'e-1', 'e-2', 'o-0']);
    for (let end = 0; end < 13; end += 1) {
      ends[end]!();
      await turns();
    }
    expect(bench.ran).toHaveLength(13);
    expect(await bench.isDone('e-9')).toBe(true);
  });

  it('IN-29 runs one handler while another fills its own places and has a backlog', async () => {
    const bench = new WorkerBench({ concurrency: 2 }, { handlers: { hangs: {}, works: {} } });
    bench.handle = (_event, { handler }) =>
      handler === 'hangs' ? new Promise(() => {}) : undefined;
    await started(bench);
    for (let i = 0; i < 50; i += 1) await bench.receive(`h-${i}`, null, ['hangs']);
    await turns();
    for (let i = 0; i < 20; i += 1) {
      expect(await bench.assign(`w-${i}`, ['works'])).toEqual(['works']);
      await turns();
      expect(await bench.isDone(`w-${i}`, 'works')).toBe(true);
    }
    await bench.receive('pending', null, ['works']);
    await turns();
    expect(await bench.isDone('pending', 'works')).toBe(true);
  });

  it('does not claim for a handler whose places are full, and claims all of its places with a backlog', async () => {
    const bench = new WorkerBench({ concurrency: 4 });
    const ends = waits(bench);
    const requests = asked(bench);
    for (let i = 0; i < 8; i += 1) await bench.receive(`e-${i}`);
    await started(bench);
    expect(requests).toEqual([[{ handler: 'h', limit: 4 }]]);
    bench.worker.wake();
    await turns();
    expect(requests).toHaveLength(1);
    for (const end of ends.splice(0)) end();
    await turns();
    expect(requests.slice(1).flat()).toEqual([{ handler: 'h', limit: 4 }]);
    for (const end of ends.splice(0)) end();
    await turns();
    expect(bench.ran).toHaveLength(8);
    expect(bench.worker.reserve(['h'])).not.toBeNull();
  });

  it('leaves half of the free places to new events while it looks for what is pending', async () => {
    const bench = await started(new WorkerBench({ concurrency: 6 }));
    const claim = bench.store.claim.bind(bench.store);
    let answer = () => {};
    const limits: number[] = [];
    bench.store.claim = async (request) => {
      limits.push(...request.wanted.map(({ limit }) => limit));
      await new Promise<void>((resolve) => (answer = resolve));
      return claim(request);
    };
    bench.worker.wake();
    await turns();
    expect(limits).toEqual([3]);
    for (const id of ['a', 'b', 'c']) expect(await bench.assign(id)).toEqual(['h']);
    answer();
  });

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

  it('claims while deliveries are settled, but never holds more than twice its places', async () => {
    const bench = new WorkerBench({ concurrency: 5 });
    const settle = settlesLate(bench);
    for (let i = 0; i < 20; i += 1) await bench.receive(`e-${i}`);
    await started(bench);
    expect(bench.ran).toHaveLength(10);
    settle();
    await turns();
    expect(bench.ran).toHaveLength(20);
  });

  it('IN-16 runs a delivery that waited for its ordering key as soon as the key is free', async () => {
    const bench = new WorkerBench();
    const settle = settlesLate(bench);
    await bench.receive('first', 'one key');
    await bench.receive('second', 'one key');
    await started(bench);
    expect(bench.ids).toEqual(['first']);
    settle();
    await turns();
    expect(bench.ids).toEqual(['first', 'second']);
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

  it('claims what waited for a place that was reserved in vain', async () => {
    const bench = await started(new WorkerBench({ concurrency: 1 }));
    const reservation = bench.worker.reserve(['h'])!;
    await bench.receive('a');
    await turns();
    expect(bench.ids).toEqual([]);
    reservation.start([]);
    await turns();
    expect(bench.ids).toEqual(['a']);
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

  it('IN-25 registers at most once a second, however many receives fail', async () => {
    const bench = await started(new WorkerBench());
    let registered = 0;
    const register = bench.store.register.bind(bench.store);
    bench.store.register = (worker) => {
      registered += 1;
      return register(worker);
    };
    for (let second = 0; second < 5; second += 1) {
      for (let failure = 0; failure < 20; failure += 1) {
        bench.worker.reserve(['h'])?.start(null);
        await turns();
      }
      bench.runtime.advance(1000);
      await turns();
    }
    expect(registered).toBeGreaterThan(2);
    expect(registered).toBeLessThan(7);
    expect(await bench.assign('a')).toEqual(['h']);
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

  it('reserves nothing without a background worker', async () => {
    const bench = new WorkerBench();
    bench.worker.start(false);
    await turns();
    await bench.worker.runDue(1000);
    expect(bench.worker.reserve(['h'])).toBeNull();
  });

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

  it('IN-25 claims under a new id after a claim failed, by rejection or by exception, and logs it once', async () => {
    for (const broken of [
      () => Promise.reject(new Error('down')),
      () => {
        throw new Error('down');
      },
    ]) {
      const log = new CapturedLog();
      Logger.overrideLogger(log);
      const bench = await started(new WorkerBench());
      const claim = bench.store.claim.bind(bench.store);
      const workers = new Set<string>();
      bench.store.claim = (request) => {
        workers.add(request.worker);
        return broken();
      };
      await bench.receive('a');
      await turns();
      for (let second = 0; second < 10; second += 1) {
        bench.runtime.advance(1000);
        await turns();
        bench.worker.wake();
        await turns();
      }
      expect(workers.size).toBeGreaterThan(2);
      // It backs off, whatever wakes it.
      expect(workers.size).toBeLessThan(8);
      expect(log.matching(/could not be read: Error: down/)).toHaveLength(1);
      expect(log.matching(/can be read again/)).toHaveLength(0);
      bench.store.claim = claim;
      bench.runtime.advance(5000);
      await turns();
      expect(await bench.isDone('a')).toBe(true);
      expect(log.matching(/can be read again/)).toHaveLength(1);
      Logger.overrideLogger(false);
    }
  });

  it('IN-25 frees and runs again what a claim brought whose answer was lost', async () => {
    const bench = await started(new WorkerBench());
    const claim = bench.store.claim.bind(bench.store);
    bench.store.claim = async (request) => {
      bench.store.claim = claim;
      await claim(request);
      throw new Error('the connection was cut');
    };
    await bench.receive('a');
    await turns();
    bench.runtime.advance(1000);
    await turns();
    expect(await bench.delivery('a')).toMatchObject({ state: 'done', attempts: 1 });
    expect(bench.ids).toEqual(['a']);
  });

  it('IN-25 frees and runs again what a receive assigned whose answer was lost', async () => {
    const bench = await started(new WorkerBench());
    let end = () => {};
    bench.handle = () => new Promise<void>((resolve) => (end = resolve));
    await bench.assign('running');
    const reservation = bench.worker.reserve(['h'])!;
    const start = reservation.start.bind(reservation);
    bench.worker.reserve = () => ({ ...reservation, start: () => start(null) });
    await bench.assign('lost');
    await turns();
    expect(bench.ids).toEqual(['running']);
    expect(await bench.delivery('lost')).toMatchObject({ state: 'running' });
    // Its worker id retires when what is known to run under it has ended.
    bench.runtime.advance(1000);
    await turns();
    expect(await bench.delivery('lost')).toMatchObject({ state: 'running' });
    bench.handle = () => {};
    end();
    await turns();
    await turns();
    expect(await bench.delivery('running')).toMatchObject({ state: 'done', attempts: 1 });
    expect(await bench.delivery('lost')).toMatchObject({ state: 'done', attempts: 1 });
  });
});

describe('the drain of an InboxWorker', () => {
  it('IN-24 gives back, without a charge, what a claim brings after it began', async () => {
    const bench = new WorkerBench();
    const claim = bench.store.claim.bind(bench.store);
    let answer = () => {};
    bench.store.claim = async (request) => {
      const claimed = await claim(request);
      await new Promise<void>((resolve) => (answer = resolve));
      return claimed;
    };
    await bench.receive('a');
    await started(bench);
    const drained = bench.worker.drain();
    await turns();
    answer();
    await drained;
    expect(bench.ids).toEqual([]);
    expect(await bench.delivery('a')).toMatchObject({ state: 'pending', attempts: 0 });
    expect(bench.runtime.pending).toBe(0);
  });

  it('IN-24 gives back, without a charge, what is assigned after it began', async () => {
    const bench = await started(new WorkerBench());
    const reservation = bench.worker.reserve(['h']);
    const drained = bench.worker.drain();
    bench.worker.reserve = () => reservation;
    await bench.assign('a');
    await drained;
    expect(bench.ids).toEqual([]);
    expect(await bench.delivery('a')).toMatchObject({ state: 'pending', attempts: 0 });
    expect(bench.runtime.pending).toBe(0);
  });

  it('IN-24 ends in bounded time though the store does not answer', async () => {
    const bench = new WorkerBench({ drainMs: 50 });
    bench.store.claim = () => new Promise(() => {});
    bench.store.retire = () => new Promise(() => {});
    await started(bench);
    const drained = bench.worker.drain();
    for (const ms of [50, 500, 2000]) {
      bench.runtime.advance(ms);
      await turns();
    }
    await drained;
    expect(bench.runtime.pending).toBe(0);
  });

  it('IN-24 claims and reserves nothing more, though it was woken while it claimed', async () => {
    const bench = new WorkerBench();
    let answer = () => {};
    let claims = 0;
    bench.store.claim = async () => {
      claims += 1;
      await new Promise<void>((resolve) => (answer = resolve));
      return [];
    };
    await started(bench);
    bench.worker.wake();
    const drained = bench.worker.drain();
    bench.worker.wake();
    expect(bench.worker.reserve(['h'])).toBeNull();
    await turns();
    answer();
    await drained;
    await turns();
    expect(claims).toBe(1);
  });

  it('IN-24 claims nothing if it drains in the turn of the event loop in which it was woken', async () => {
    const bench = await started(new WorkerBench());
    const requests = asked(bench);
    bench.worker.wake();
    await bench.worker.drain();
    await turns();
    expect(requests).toEqual([]);
  });

  it('IN-24 keeps what ignores its signal for a grace, uncharged and with its ordering key, then others run it', async () => {
    const bench = await started(new WorkerBench({ drainMs: 50 }));
    bench.handle = () => new Promise(() => {});
    await bench.receive('hangs', 'key');
    await bench.receive('next', 'key');
    await turns();
    const drained = bench.worker.drain();
    await turns();
    bench.runtime.advance(50);
    await turns();
    expect(bench.ran[0]!.context.signal.aborted).toBe(true);
    bench.runtime.advance(500);
    await drained;
    const other = await started(new WorkerBench({ leaseMs: 3000 }, { of: bench }));
    for (let second = 0; second < 9; second += 1) {
      bench.runtime.advance(1000);
      await turns();
      expect(other.ids).toEqual([]);
    }
    bench.runtime.advance(2000);
    await turns();
    await turns();
    expect(other.ids.toSorted()).toEqual(['hangs', 'next']);
    expect(await bench.delivery('hangs')).toMatchObject({ state: 'done', attempts: 1 });
  });

  it('IN-24 leaves no timer if the store is down', async () => {
    const bench = await started(new WorkerBench());
    bench.store.nextDueInMs = () => Promise.reject(new Error('down'));
    bench.worker.wake();
    await turns();
    await bench.worker.drain();
    expect(bench.runtime.pending).toBe(0);
  });

  it('IN-24 records what ends within the grace', async () => {
    const bench = await started(new WorkerBench({ drainMs: 50 }));
    let end = () => {};
    bench.handle = () => new Promise<void>((resolve) => (end = resolve));
    await bench.assign('a');
    const drained = bench.worker.drain();
    await turns();
    bench.runtime.advance(50);
    await turns();
    bench.runtime.advance(500);
    await drained;
    end();
    await turns();
    expect(await bench.delivery('a')).toMatchObject({ state: 'done', attempts: 1 });
  });
});
