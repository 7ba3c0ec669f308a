import { describe, expect, it } from '@jest/globals';
import { logged } from '../../../../../test/support/log/captured-log.js';
import { started, turns, WorkerHarness } from '../../../../../test/support/inbox/worker-harness.js';
import { fixed, none } from '../../events/retry-schedule.js';

const DOWN = () => Promise.reject(new Error('down'));

describe('Attempt', () => {
  it('a delivery without attempts left becomes dead without a call of its handler', async () => {
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
        /started 2 times, and its retry schedule has 1 attempts now/,
      ),
    });
  });

  it('the first handler gets the event that this process parsed, and each other handler parses an object of its own', async () => {
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

  it('IN-13 an attempt retries to settle while the store is down, and reports its outcome after that', async () => {
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

  it('IN-13 the outcome of an attempt is not stored if its delivery was freed, which is logged', () =>
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

  it('IN-16 the next delivery of a key runs at once, although the response to complete() was lost', async () => {
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
        log.matching(/^error .*could not be stored: Error: down\. The application closes/),
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

  it('the context of a handler is frozen, and changes to its raw bytes change nothing stored', async () => {
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

  it('the first and the last failed attempt log the stack, the attempts between them one line', () =>
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
