import { describe, expect, it } from '@jest/globals';
import {
  asked,
  started,
  turns,
  WorkerBench,
} from '../../../../../test/support/inbox/worker-bench.js';

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
