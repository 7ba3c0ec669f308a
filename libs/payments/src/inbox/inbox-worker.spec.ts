import { describe, expect, it } from '@jest/globals';
import { until } from '../../../../test/support/fake.runtime.js';
import { turns, WorkerBench } from '../../../../test/support/worker.bench.js';

/** Has the store complete nothing until it is told to, as one that settles in groups, and slowly. */
function settlesLate({ store }: WorkerBench): () => void {
  const { promise: settled, resolve } = Promise.withResolvers<void>();
  const complete = store.complete.bind(store);
  store.complete = async (lease) => {
    await settled;
    return complete(lease);
  };
  return resolve;
}

describe('InboxWorker', () => {
  it('runs what was received before it started, and nothing before that', async () => {
    const bench = new WorkerBench();
    await bench.receive('a');
    await turns();
    expect(bench.ran).toEqual([]);
    bench.worker.start();
    await turns();
    expect(bench.ran).toHaveLength(1);
  });

  it('loses no wake-up that comes while it looks', async () => {
    const bench = new WorkerBench();
    bench.worker.start();
    const nextDueInMs = bench.store.nextDueInMs.bind(bench.store);
    let late: Promise<void> | null = null;
    // It has claimed, found nothing, and asks how long to sleep: now one comes.
    bench.store.nextDueInMs = async (handlers) => {
      const next = await nextDueInMs(handlers);
      await (late ??= bench.receive('late'));
      return next;
    };
    bench.worker.wake();
    await turns();
    expect(bench.ran.map(({ id }) => id)).toEqual(['late']);
  });

  it('runs as many at once as it may, and takes the next as soon as one ends', async () => {
    const bench = new WorkerBench({ concurrency: 3 });
    const ends: (() => void)[] = [];
    bench.handle = () => new Promise<void>((resolve) => ends.push(resolve));
    bench.worker.start();
    for (let i = 0; i < 10; i += 1) await bench.receive(`e-${i}`);
    await turns();
    expect(ends).toHaveLength(3);
    for (let end = 0; end < 10; end += 1) {
      ends[end]!();
      await turns();
      expect(ends).toHaveLength(Math.min(10, end + 4));
    }
  });

  it('sleeps while one waits for another of its ordering key, and takes it when that ends', async () => {
    const bench = new WorkerBench();
    const ends: (() => void)[] = [];
    bench.handle = () => new Promise<void>((resolve) => ends.push(resolve));
    bench.worker.start();
    await bench.receive('a', 'k');
    await bench.receive('b', 'k');
    await turns();
    expect(ends).toHaveLength(1);
    // The heartbeat is next; nothing looks every millisecond.
    expect(bench.runtime.nextIn).toBe(20_000);
    ends[0]!();
    await turns();
    expect(bench.ran.map(({ id }) => id)).toEqual(['a', 'b']);
  });

  it('lives through a store that is down for a while, by exception or by rejection', async () => {
    for (const broken of [
      () => Promise.reject(new Error('down')),
      () => {
        throw new Error('down');
      },
    ]) {
      const bench = new WorkerBench({ leaseMs: 3000 });
      const claim = bench.store.claim.bind(bench.store);
      const extend = bench.store.extend.bind(bench.store);
      bench.store.claim = broken;
      bench.worker.start();
      await bench.receive('a');
      await turns();
      expect(bench.ran).toEqual([]);
      bench.store.claim = claim;
      bench.runtime.advance(1000);
      await turns();
      expect(bench.ran).toHaveLength(1);
      let end = () => {};
      bench.handle = () => new Promise<void>((resolve) => (end = resolve));
      await bench.receive('b');
      await turns();
      bench.store.extend = broken;
      bench.runtime.advance(1000);
      await turns();
      expect(bench.ran[1]!.context.signal.aborted).toBe(false);
      bench.store.extend = extend;
      bench.runtime.advance(1000);
      await turns();
      end();
      await until(() => bench.runtime.pending === 1);
      expect(await bench.isDone('b')).toBe(true);
    }
  });

  it('gives back, without a charge, what a claim brings when it has begun to drain', async () => {
    const bench = new WorkerBench();
    const claim = bench.store.claim.bind(bench.store);
    let answer = () => {};
    bench.store.claim = async (request) => {
      const claimed = await claim(request);
      await new Promise<void>((resolve) => (answer = resolve));
      return claimed;
    };
    await bench.receive('a');
    bench.worker.start();
    await turns();
    const drained = bench.worker.drain();
    await turns();
    answer();
    await drained;
    expect(bench.ran).toEqual([]);
    expect(await bench.delivery('a')).toMatchObject({ state: 'pending', attempts: 0 });
    expect(bench.runtime.pending).toBe(0);
  });

  it('drains within its time though the store does not answer', async () => {
    const bench = new WorkerBench({ drainMs: 50 });
    bench.store.claim = () => new Promise(() => {});
    bench.worker.start();
    await turns();
    const drained = bench.worker.drain();
    bench.runtime.advance(50);
    await turns();
    bench.runtime.advance(500);
    await drained;
    expect(bench.runtime.pending).toBe(0);
  });

  it('claims nothing more once it drains, though it was woken while it claimed', async () => {
    const bench = new WorkerBench();
    let answer = () => {};
    let claims = 0;
    bench.store.claim = async () => {
      claims += 1;
      await new Promise<void>((resolve) => (answer = resolve));
      return [];
    };
    bench.worker.start();
    await turns();
    bench.worker.wake();
    const drained = bench.worker.drain();
    bench.worker.wake();
    await turns();
    answer();
    await drained;
    await turns();
    expect(claims).toBe(1);
  });

  it('claims nothing where it drains before the turn ends in which it was woken', async () => {
    const bench = new WorkerBench();
    bench.worker.start();
    await turns();
    let claims = 0;
    bench.store.claim = async () => {
      claims += 1;
      return [];
    };
    bench.worker.wake();
    await bench.worker.drain();
    await turns();
    expect(claims).toBe(0);
  });

  it('claims while deliveries are settled, but never holds more than twice its leases', async () => {
    const bench = new WorkerBench({ concurrency: 5 });
    const limits: number[] = [];
    const claim = bench.store.claim.bind(bench.store);
    bench.store.claim = (request) => {
      limits.push(request.limit);
      return claim(request);
    };
    const settle = settlesLate(bench);
    for (let i = 0; i < 20; i += 1) await bench.receive(`e-${i}`);
    bench.worker.start();
    await turns();
    expect(bench.ran).toHaveLength(10);
    expect(limits).toEqual([5, 5]);
    settle();
    await turns();
    expect(bench.ran).toHaveLength(20);
    expect(Math.max(...limits)).toBe(5);
  });

  it('claims once for all that wake it in one turn of the event loop', async () => {
    const bench = new WorkerBench();
    bench.worker.start();
    await turns();
    let claims = 0;
    const claim = bench.store.claim.bind(bench.store);
    bench.store.claim = async (request) => {
      claims += 1;
      const claimed = await claim(request);
      expect(claimed).toHaveLength(claims === 1 ? 3 : 0);
      return claimed;
    };
    await Promise.all([bench.receive('a'), bench.receive('b'), bench.receive('c')]);
    await turns();
    expect(bench.ran).toHaveLength(3);
    // For the three, and for the room they made.
    expect(claims).toBe(2);
  });

  it('takes a delivery that waited for its ordering key as soon as the key is free', async () => {
    const bench = new WorkerBench();
    const settle = settlesLate(bench);
    await bench.receive('first', 'one key');
    await bench.receive('second', 'one key');
    bench.worker.start();
    await turns();
    expect(bench.ran).toHaveLength(1);
    settle();
    await turns();
    expect(bench.ran).toHaveLength(2);
  });
});
