import { describe, expect, it } from '@jest/globals';
import { logged } from '../../../../../test/support/log/captured-log.js';
import { started, turns, WorkerHarness } from '../../../../../test/support/inbox/worker-harness.js';
import { fixed, none } from '../../events/retry-schedule.js';
import type { InboxStore } from '../store/inbox-store.js';

const DOWN = () => Promise.reject(new Error('down'));

describe('Attempt', () => {
  it('a delivery without attempts left becomes dead, and its handler does not run', async () => {
    const harness = await started(new WorkerHarness({ retry: fixed([0, 0]) }));
    harness.handle = () => Promise.reject(new Error('no'));
    await harness.receive('a');
    await turns();
    harness.runtime.advance(0);
    await turns();
    // The next version of the application has a shorter retry schedule.
    const next = new WorkerHarness({ retry: none }, { of: harness });
    await harness.worker.drain();
    const watch = next.outcomes.watch('c', 'a');
    next.worker.start();
    expect(await watch.failures(['h'])).toEqual(['h']);
    expect(next.ran).toEqual([]);
    expect(await harness.delivery('a')).toMatchObject({
      state: 'dead',
      lastError: expect.stringMatching(
        /The delivery had 2 attempts, and its retry schedule now allows 1/,
      ),
    });
  });

  it('the first handler gets the event that this process parsed, and each other handler gets an object of its own', async () => {
    const handlers = { a: { retry: fixed([0]) }, b: {}, c: {} };
    const harness = await started(new WorkerHarness({}, { handlers }));
    harness.handle = ({ data }, { attempt, handler }) => {
      data['changed by'] = handler;
      if (handler === 'a' && attempt === 1) throw new Error('no');
    };
    const data = { parsed: 'here' };
    const timestamp = new Date(0).toISOString();
    const parsed = { id: 'e', eventType: 't', timestamp, data, metadata: {} };
    await harness.assign('e', harness.registry.names(), parsed);
    await turns();
    harness.runtime.advance(0);
    await turns();
    expect(data).toEqual({ parsed: 'here', 'changed by': 'a' });
    expect(harness.ran.map(({ event }) => event.data)).toEqual([
      data,
      { 'changed by': 'b' },
      { 'changed by': 'c' },
      { 'changed by': 'a' },
    ]);
  });

  it('IN-13 while the store is down, the worker repeats the settlement of an attempt, and reports the outcome only when it is stored', async () => {
    const harness = await started(new WorkerHarness({ leaseMs: 1000 }));
    const complete = harness.store.complete.bind(harness.store);
    const watch = harness.outcomes.watch('c', 'a');
    harness.store.complete = DOWN;
    harness.store.heartbeat = DOWN;
    await harness.assign('a');
    for (let second = 0; second < 100; second += 1) {
      await turns();
      harness.runtime.advance(1000);
    }
    expect(watch.hasEnded('h')).toBe(false);
    harness.store.complete = complete;
    harness.runtime.advance(5000);
    await turns();
    expect(await harness.delivery('a')).toMatchObject({ state: 'done', attempts: 1 });
    expect(watch.hasEnded('h')).toBe(true);
    expect(harness.ran).toHaveLength(1);
  });

  it('IN-13 if a delivery was freed, the outcome of its attempt is not stored, and a warning is logged', () =>
    logged(async (log) => {
      const harness = await started(new WorkerHarness());
      harness.store.complete = async () => ({ settled: false, nextDue: false });
      await harness.assign('a');
      await turns();
      expect(
        log.matching(/^warn The result of delivery of event a .* was not stored/),
      ).toHaveLength(1);
      expect(log.matching(/failed|done/)).toEqual([]);
    }));

  it('IN-16 the next delivery of an ordering key runs at once, even if the response to complete() was lost', async () => {
    const harness = await started(new WorkerHarness({ leaseMs: 3_600_000 }));
    const complete = harness.store.complete.bind(harness.store);
    harness.store.complete = async (lease) => {
      harness.store.complete = complete;
      await complete(lease);
      throw new Error('the connection was cut');
    };
    harness.store.onWake = () => () => {};
    await harness.receive('first', 'key');
    await harness.receive('second', 'key');
    await turns();
    harness.runtime.advance(100);
    await turns();
    expect(harness.ids).toEqual(['first', 'second']);
    expect(await harness.isDone('second')).toBe(true);
  });

  it('an attempt stops retrying to settle when the application closes', () =>
    logged(async (log) => {
      const harness = await started(new WorkerHarness({ drainMs: 50 }));
      harness.store.complete = DOWN;
      await harness.assign('a');
      await turns();
      const drained = harness.worker.drain();
      await turns();
      harness.runtime.advance(50);
      await drained;
      expect(harness.runtime.pending).toBe(0);
      expect(
        log.matching(
          /^error .*could not be stored: Error: down\. The worker does not try to store it again/,
        ),
      ).toHaveLength(1);
    }));

  it('a failure is logged only after its outcome was stored', () =>
    logged(async (log) => {
      const harness = await started(new WorkerHarness());
      const fail = harness.store.fail.bind(harness.store);
      harness.store.fail = DOWN;
      harness.handle = DOWN;
      await harness.assign('a');
      await turns();
      expect(log.matching(/could not be stored/)).toHaveLength(1);
      expect(log.matching(/next attempt/)).toEqual([]);
      harness.store.fail = fail;
      harness.runtime.advance(100);
      await turns();
      expect(log.matching(/next attempt in 1500 ms/)).toHaveLength(1);
    }));

  it('the context of a handler is frozen, and changes to its raw bytes do not change the stored body', async () => {
    const harness = await started(new WorkerHarness());
    harness.handle = (_event, context) => {
      context.raw.fill(0);
    };
    await harness.assign('a');
    await turns();
    expect(Object.isFrozen(harness.ran[0]!.context)).toBe(true);
    const { raw } = (await harness.store.find('c', 'a'))!;
    expect(JSON.parse(raw!.toString())).toMatchObject({ id: 'a' });
  });

  it('the first and the last failed attempt log the stack, and the other attempts log only one line', () =>
    logged(async (log) => {
      const harness = await started(new WorkerHarness({ retry: fixed([1000, 1000, 1000]) }));
      harness.handle = () => Promise.reject(new RangeError('no such order'));
      await harness.receive('a');
      await turns();
      for (let attempt = 2; attempt <= 4; attempt += 1) {
        harness.runtime.advance(1000);
        await turns();
      }
      const lines = log.matching(/no such order/);
      expect(lines.map((line) => /\n {4}at /.test(line))).toEqual([true, false, false, true]);
      expect(lines[1]).toMatch(
        /^warn Delivery of event a \(company c\) to h failed \(attempt 2 of 4\); next attempt in 1000 ms\. RangeError: no such order PaymentInbox$/,
      );
      expect(lines[3]).toMatch(/^error .*\(attempt 4 of 4\) and is dead/);
    }));
});

describe('the time limit of an Attempt', () => {
  it('IN-30 an attempt that exceeds its time limit fails and frees its slot; a warning is logged if the handler ignores the signal', () =>
    logged(async (log) => {
      const harness = await started(
        new WorkerHarness({ concurrency: 1, timeoutMs: 5000, retry: fixed([60_000]) }),
      );
      let end = () => {};
      harness.handle = () => new Promise<void>((resolve) => (end = resolve));
      await harness.assign('hangs');
      await harness.assign('waits');
      await turns();
      harness.runtime.advance(4999);
      await turns();
      expect(harness.ran.map(({ context }) => context.signal.aborted)).toEqual([false]);
      harness.handle = () => {};
      harness.runtime.advance(1);
      await turns();
      expect(harness.ran[0]!.context.signal).toMatchObject({
        aborted: true,
        reason: { name: 'TimeoutError', message: expect.stringMatching(/5000 ms/) },
      });
      expect(await harness.delivery('hangs')).toMatchObject({
        state: 'pending',
        attempts: 1,
        lastError: expect.stringMatching(/\(handler_timeout\): Handler h took longer than 5000 ms/),
      });
      expect(await harness.isDone('waits')).toBe(true);
      expect(log.matching(/^warn Delivery of event hangs .*handler_timeout/)).toHaveLength(1);
      expect(harness.worker.ignoringSignal).toBe(0);
      harness.runtime.advance(500);
      expect(harness.worker.ignoringSignal).toBe(1);
      expect(log.matching(/^warn Handler h still runs .*\(1 such handlers/)).toHaveLength(1);
      end();
      await turns();
      expect(harness.worker.ignoringSignal).toBe(0);
      expect(await harness.delivery('hangs')).toMatchObject({ state: 'pending', attempts: 1 });
    }));

  it('IN-30 timeoutMs of the handler applies, and a handler that obeys its signal causes no warning', () =>
    logged(async (log) => {
      const harness = await started(
        new WorkerHarness({ timeoutMs: 50 }, { handlers: { h: { timeoutMs: 1000, retry: none } } }),
      );
      harness.handle = (_event, { signal }) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => reject(signal.reason as Error));
        });
      await harness.assign('a');
      await turns();
      harness.runtime.advance(999);
      await turns();
      expect(harness.ran[0]!.context.signal.aborted).toBe(false);
      harness.runtime.advance(1);
      await turns();
      expect(await harness.delivery('a')).toMatchObject({ state: 'dead' });
      harness.runtime.advance(500);
      expect(log.matching(/still runs/)).toEqual([]);
      expect(harness.worker.ignoringSignal).toBe(0);
    }));
});

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

  it('IN-30 a commit that was stored before the time limit counts, even if its response arrives after the time limit', () =>
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
