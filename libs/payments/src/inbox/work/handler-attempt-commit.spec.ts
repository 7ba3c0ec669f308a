import { describe, expect, it } from '@jest/globals';
import { logged } from '../../../../../test/support/log/captured-log.js';
import { started, turns, WorkerBench } from '../../../../../test/support/inbox/worker-bench.js';
import { none } from '../../events/retry-schedule.js';
import type { InboxStore } from '../store/inbox-store.js';

/** Lets the store of a bench commit, as one that is transactional. */
function commits({ store }: WorkerBench): { work: unknown[] } {
  const seen = { work: [] as unknown[] };
  const commit: InboxStore['commit'] = async (lease, work) => {
    const result = await work(null);
    const { settled, nextDue } = await store.complete(lease);
    if (!settled) throw Object.assign(new Error('lease lost'), { code: 'lease_lost' });
    seen.work.push(result);
    return { result, nextDue };
  };
  Object.assign(store, { commit });
  return seen;
}

describe('the commit of a HandlerAttempt', () => {
  it('IN-30 refuses a commit that ends after the attempt failed', async () => {
    const bench = await started(new WorkerBench({ timeoutMs: 1000, retry: none }));
    const { work } = commits(bench);
    let end = () => {};
    let refused: unknown;
    bench.handle = (_event, { commit }) =>
      commit(() => new Promise<void>((resolve) => (end = resolve))).catch((error: unknown) => {
        refused = error;
      });
    await bench.assign('a');
    await turns();
    bench.runtime.advance(1000);
    await turns();
    expect(await bench.delivery('a')).toMatchObject({ state: 'dead', attempts: 1 });
    end();
    await turns();
    expect(refused).toMatchObject({ code: 'lease_lost' });
    expect(work).toEqual([]);
    expect(await bench.delivery('a')).toMatchObject({ state: 'dead' });
  });

  it('IN-30 lets a commit win that was stored before the time was up, although its answer comes later', () =>
    logged(async (log) => {
      const bench = await started(new WorkerBench({ timeoutMs: 1000 }));
      commits(bench);
      const commit = bench.store.commit.bind(bench.store) as InboxStore['commit'];
      let answer = () => {};
      Object.assign(bench.store, {
        commit: async (...args: Parameters<typeof commit>) => {
          const committed = await commit(...args);
          await new Promise<void>((resolve) => (answer = resolve));
          return committed;
        },
      });
      bench.handle = (_event, context) => context.commit(() => 'booked');
      const watch = bench.settlements.watch('c', 'a');
      await bench.assign('a');
      await turns();
      bench.runtime.advance(1000);
      await turns();
      expect(watch.hasEnded('h')).toBe(false);
      answer();
      expect(await watch.failures(['h'])).toEqual([]);
      expect(await bench.delivery('a')).toMatchObject({
        state: 'done',
        attempts: 1,
        lastError: null,
      });
      expect(log.matching(/next attempt|was not stored/)).toEqual([]);
    }));

  it('IN-22 leaves a delivery done whose handler fails, or hangs, after its commit', () =>
    logged(async (log) => {
      const bench = await started(new WorkerBench({ timeoutMs: 1000, concurrency: 1 }));
      commits(bench);
      bench.handle = async (_event, { commit }) => {
        await commit(() => {});
        throw new Error('e-mail failed');
      };
      await bench.receive('fails');
      await turns();
      expect(await bench.isDone('fails')).toBe(true);
      expect(
        log.matching(/^error .* is done, but its handler failed after its commit.*e-mail failed/),
      ).toHaveLength(1);
      bench.handle = async (_event, { commit }) => {
        await commit(() => {});
        await new Promise(() => {});
      };
      await bench.receive('hangs');
      await turns();
      bench.handle = () => {};
      await bench.receive('next');
      await turns();
      bench.runtime.advance(1000);
      await turns();
      expect(await bench.isDone('hangs')).toBe(true);
      expect(await bench.isDone('next')).toBe(true);
      expect(
        log.matching(
          /event hangs .* is done, but its handler failed after its commit.*handler_timeout/,
        ),
      ).toHaveLength(1);
    }));

  it.each<[string, (committed: Promise<void>) => unknown]>([
    ['does not await', () => {}],
    ['awaits only in a callback', (committed) => committed.then(() => {})],
  ])('waits for a commit that its handler %s', async (_form, use) => {
    const bench = await started(new WorkerBench());
    commits(bench);
    let end = () => {};
    bench.handle = (_event, { commit }) => {
      void use(commit(() => new Promise<void>((resolve) => (end = resolve))));
    };
    const watch = bench.settlements.watch('c', 'a');
    await bench.assign('a');
    await turns();
    expect(await bench.delivery('a')).toMatchObject({ state: 'running' });
    expect(watch.hasEnded('h')).toBe(false);
    end();
    expect(await watch.failures(['h'])).toEqual([]);
    expect(await bench.isDone('a')).toBe(true);
  });

  it('IN-21 does not settle a delivery as done whose handler did not await a commit that failed', async () => {
    const bench = await started(new WorkerBench());
    commits(bench);
    let end = () => {};
    bench.handle = async (_event, { commit }) => {
      void commit(() => Promise.reject(new Error('constraint violated')));
      await new Promise<void>((resolve) => (end = resolve));
    };
    await bench.assign('a');
    await turns();
    end();
    await turns();
    expect(await bench.delivery('a')).toMatchObject({
      state: 'pending',
      lastError: expect.stringContaining('constraint violated'),
    });
  });

  it('settles a delivery as done whose handler handled the error of its commit', async () => {
    const bench = await started(new WorkerBench());
    commits(bench);
    bench.handle = async (_event, { commit }) => {
      await commit(() => Promise.reject(new Error('booked before'))).catch(() => {});
    };
    await bench.assign('a');
    await turns();
    expect(await bench.isDone('a')).toBe(true);
  });

  it('IN-30 does not wait for a commit that hangs, after another process has freed its delivery', async () => {
    const bench = await started(new WorkerBench({ timeoutMs: 1000 }));
    commits(bench);
    bench.handle = (_event, { commit }) => commit(() => new Promise(() => {}));
    bench.store.fail = async () => ({ settled: false, nextDue: false });
    const watch = bench.settlements.watch('c', 'a');
    await bench.assign('a');
    await turns();
    for (const ms of [1000, 5000]) {
      bench.runtime.advance(ms);
      await turns();
    }
    expect(watch.hasEnded('h')).toBe(true);
  });

  it('runs the next delivery of an ordering key after a commit', async () => {
    const bench = await started(new WorkerBench());
    commits(bench);
    bench.handle = (_event, { commit }) => commit(() => {});
    await bench.receive('first', 'key');
    await bench.receive('second', 'key');
    await bench.receive('third', 'key');
    await turns();
    expect(bench.ids).toEqual(['first', 'second', 'third']);
  });
});
