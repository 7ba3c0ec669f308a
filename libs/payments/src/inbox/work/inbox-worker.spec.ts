import { describe, expect, it } from '@jest/globals';
import {
  settlesLate,
  waits,
  asked,
  started,
  turns,
  WorkerBench,
} from '../../../../../test/support/inbox/worker-bench.js';

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

  it('reserves nothing without a background worker', async () => {
    const bench = new WorkerBench();
    bench.worker.start(false);
    await turns();
    await bench.worker.runDue(1000);
    expect(bench.worker.reserve(['h'])).toBeNull();
  });
});
