import { describe, expect, it } from '@jest/globals';
import { logged } from '../../../../../test/support/log/captured-log.js';
import { started, turns, WorkerBench } from '../../../../../test/support/inbox/worker-bench.js';
import { fixed, none } from '../../events/retry-schedule.js';

describe('the time limit of a HandlerAttempt', () => {
  it('IN-30 aborts the signal, fails the attempt, frees the place, and warns of what ignores its signal', () =>
    logged(async (log) => {
      const bench = await started(
        new WorkerBench({ concurrency: 1, timeoutMs: 5000, retry: fixed([60_000]) }),
      );
      let end = () => {};
      bench.handle = () => new Promise<void>((resolve) => (end = resolve));
      await bench.assign('hangs');
      await bench.assign('waits');
      await turns();
      bench.runtime.advance(4999);
      await turns();
      expect(bench.ran.map(({ context }) => context.signal.aborted)).toEqual([false]);
      bench.handle = () => {};
      bench.runtime.advance(1);
      await turns();
      expect(bench.ran[0]!.context.signal).toMatchObject({
        aborted: true,
        reason: { name: 'TimeoutError', message: expect.stringMatching(/5000 ms/) },
      });
      expect(await bench.delivery('hangs')).toMatchObject({
        state: 'pending',
        attempts: 1,
        lastError: expect.stringMatching(/\(handler_timeout\): Handler h took longer than 5000 ms/),
      });
      expect(await bench.isDone('waits')).toBe(true);
      expect(log.matching(/^warn Delivery of event hangs .*handler_timeout/)).toHaveLength(1);
      expect(bench.worker.ignoringSignal).toBe(0);
      bench.runtime.advance(500);
      expect(bench.worker.ignoringSignal).toBe(1);
      expect(log.matching(/^warn Handler h still runs .*\(1 such handlers/)).toHaveLength(1);
      end();
      await turns();
      expect(bench.worker.ignoringSignal).toBe(0);
      expect(await bench.delivery('hangs')).toMatchObject({ state: 'pending', attempts: 1 });
    }));

  it('IN-30 takes the limit of the handler, and does not warn of one that heeds its signal, even by failing', () =>
    logged(async (log) => {
      const bench = await started(
        new WorkerBench({ timeoutMs: 50 }, { handlers: { h: { timeoutMs: 1000, retry: none } } }),
      );
      bench.handle = (_event, { signal }) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => reject(signal.reason as Error));
        });
      await bench.assign('a');
      await turns();
      bench.runtime.advance(999);
      await turns();
      expect(bench.ran[0]!.context.signal.aborted).toBe(false);
      bench.runtime.advance(1);
      await turns();
      expect(await bench.delivery('a')).toMatchObject({ state: 'dead' });
      bench.runtime.advance(500);
      expect(log.matching(/still runs/)).toEqual([]);
      expect(bench.worker.ignoringSignal).toBe(0);
    }));
});
