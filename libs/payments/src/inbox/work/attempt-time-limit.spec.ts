import { describe, expect, it } from '@jest/globals';
import { logged } from '../../../../../test/support/log/captured-log.js';
import { started, turns, WorkerHarness } from '../../../../../test/support/inbox/worker-harness.js';
import { fixed, none } from '../../events/retry-schedule.js';

describe('the time limit of an Attempt', () => {
  it('IN-30 a handler over its time limit fails and frees its slot; if it ignores its signal, that is logged', () =>
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
