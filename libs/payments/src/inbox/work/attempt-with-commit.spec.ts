import { describe, expect, it } from '@jest/globals';
import { logged } from '../../../../../test/support/log/captured-log.js';
import { started, turns, WorkerHarness } from '../../../../../test/support/inbox/worker-harness.js';
import { none } from '../../events/retry-schedule.js';
import type { InboxStore } from '../store/inbox-store.js';

/** Makes the store of a harness transactional. Returns the results of the committed work. */
function commits({ store }: WorkerHarness): { work: unknown[] } {
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

describe('the commit of an Attempt', () => {
  it('IN-30 a commit that ends after its attempt timed out is rejected', async () => {
    const harness = await started(new WorkerHarness({ timeoutMs: 1000, retry: none }));
    const { work } = commits(harness);
    let end = () => {};
    let rejected: unknown;
    harness.handle = (_event, { commit }) =>
      commit(() => new Promise<void>((resolve) => (end = resolve))).catch((error: unknown) => {
        rejected = error;
      });
    await harness.assign('a');
    await turns();
    harness.runtime.advance(1000);
    await turns();
    expect(await harness.delivery('a')).toMatchObject({ state: 'dead', attempts: 1 });
    end();
    await turns();
    expect(rejected).toMatchObject({ code: 'lease_lost' });
    expect(work).toEqual([]);
    expect(await harness.delivery('a')).toMatchObject({ state: 'dead' });
  });

  it('IN-30 a commit that was stored before the time limit counts, although its response comes later', () =>
    logged(async (log) => {
      const harness = await started(new WorkerHarness({ timeoutMs: 1000 }));
      commits(harness);
      const commit = harness.store.commit.bind(harness.store);
      let respond = () => {};
      Object.assign(harness.store, {
        commit: async (...args: Parameters<typeof commit>) => {
          const committed = await commit(...args);
          await new Promise<void>((resolve) => (respond = resolve));
          return committed;
        },
      });
      harness.handle = (_event, context) => context.commit(() => 'booked');
      const watch = harness.outcomes.watch('c', 'a');
      await harness.assign('a');
      await turns();
      harness.runtime.advance(1000);
      await turns();
      expect(watch.hasEnded('h')).toBe(false);
      respond();
      expect(await watch.failures(['h'])).toEqual([]);
      expect(await harness.delivery('a')).toMatchObject({
        state: 'done',
        attempts: 1,
        lastError: null,
      });
      expect(log.matching(/next attempt|was not stored/)).toEqual([]);
    }));

  it('IN-22 a delivery stays done if its handler fails or hangs after the commit', () =>
    logged(async (log) => {
      const harness = await started(new WorkerHarness({ timeoutMs: 1000, concurrency: 1 }));
      commits(harness);
      harness.handle = async (_event, { commit }) => {
        await commit(() => {});
        throw new Error('e-mail failed');
      };
      await harness.receive('fails');
      await turns();
      expect(await harness.isDone('fails')).toBe(true);
      expect(
        log.matching(/^error .* is done, but its handler failed after its commit.*e-mail failed/),
      ).toHaveLength(1);
      harness.handle = async (_event, { commit }) => {
        await commit(() => {});
        await new Promise(() => {});
      };
      await harness.receive('hangs');
      await turns();
      harness.handle = () => {};
      await harness.receive('next');
      await turns();
      harness.runtime.advance(1000);
      await turns();
      expect(await harness.isDone('hangs')).toBe(true);
      expect(await harness.isDone('next')).toBe(true);
      expect(
        log.matching(
          /event hangs .* is done, but its handler failed after its commit.*handler_timeout/,
        ),
      ).toHaveLength(1);
    }));

  it.each<[string, (committed: Promise<void>) => unknown]>([
    ['does not await', () => {}],
    ['awaits only in a callback', (committed) => committed.then(() => {})],
  ])('an attempt waits for a commit that its handler %s', async (_form, use) => {
    const harness = await started(new WorkerHarness());
    commits(harness);
    let end = () => {};
    harness.handle = (_event, { commit }) => {
      void use(commit(() => new Promise<void>((resolve) => (end = resolve))));
    };
    const watch = harness.outcomes.watch('c', 'a');
    await harness.assign('a');
    await turns();
    expect(await harness.delivery('a')).toMatchObject({ state: 'running' });
    expect(watch.hasEnded('h')).toBe(false);
    end();
    expect(await watch.failures(['h'])).toEqual([]);
    expect(await harness.isDone('a')).toBe(true);
  });

  it('IN-21 an attempt fails if its handler did not await a commit that failed', async () => {
    const harness = await started(new WorkerHarness());
    commits(harness);
    let end = () => {};
    harness.handle = async (_event, { commit }) => {
      void commit(() => Promise.reject(new Error('constraint violated')));
      await new Promise<void>((resolve) => (end = resolve));
    };
    await harness.assign('a');
    await turns();
    end();
    await turns();
    expect(await harness.delivery('a')).toMatchObject({
      state: 'pending',
      lastError: expect.stringContaining('constraint violated'),
    });
  });

  it('a delivery is done if its handler caught the error of its commit', async () => {
    const harness = await started(new WorkerHarness());
    commits(harness);
    harness.handle = async (_event, { commit }) => {
      await commit(() => Promise.reject(new Error('booked before'))).catch(() => {});
    };
    await harness.assign('a');
    await turns();
    expect(await harness.isDone('a')).toBe(true);
  });

  it('IN-30 an attempt does not wait long for a hanging commit after its delivery was freed', async () => {
    const harness = await started(new WorkerHarness({ timeoutMs: 1000 }));
    commits(harness);
    harness.handle = (_event, { commit }) => commit(() => new Promise(() => {}));
    harness.store.fail = async () => ({ settled: false, nextDue: false });
    const watch = harness.outcomes.watch('c', 'a');
    await harness.assign('a');
    await turns();
    for (const ms of [1000, 5000]) {
      harness.runtime.advance(ms);
      await turns();
    }
    expect(watch.hasEnded('h')).toBe(true);
  });

  it('the next delivery of an ordering key runs after a commit', async () => {
    const harness = await started(new WorkerHarness());
    commits(harness);
    harness.handle = (_event, { commit }) => commit(() => {});
    await harness.receive('first', 'key');
    await harness.receive('second', 'key');
    await harness.receive('third', 'key');
    await turns();
    expect(harness.ids).toEqual(['first', 'second', 'third']);
  });
});
