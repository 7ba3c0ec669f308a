import { expect, it } from '@jest/globals';
import { FakeRuntime } from '../../../../test/support/time/fake-runtime.js';
import { ModuleRuntime, systemRuntime } from './payments-runtime.js';

const MAX_MS = 2 ** 31 - 1;
const MONTHS_MS = 100 * 86_400_000;

/** A runtime that rejects the delays for which a timer of Node.js would fire at once. */
class NodeTimers extends FakeRuntime {
  override schedule(ms: number, callback: () => void): () => void {
    expect(ms).toBeLessThanOrEqual(MAX_MS);
    return super.schedule(ms, callback);
  }
}

it('ModuleRuntime calls back after a delay that is too long for one timer', () => {
  const timers = new NodeTimers();
  const runtime = new ModuleRuntime(timers);
  let calls = 0;
  runtime.schedule(MONTHS_MS, () => (calls += 1));
  timers.advance(MONTHS_MS - 1);
  expect(calls).toBe(0);
  timers.advance(1);
  expect([calls, timers.pending]).toEqual([1, 0]);
});

it('ModuleRuntime can cancel a long delay during each of the timers that make up the delay', () => {
  const timers = new NodeTimers();
  for (const afterMs of [0, MAX_MS + 1, 3 * MAX_MS + 1]) {
    const cancel = new ModuleRuntime(timers).schedule(4 * MAX_MS, () => {
      throw new Error('not cancelled');
    });
    timers.advance(afterMs);
    cancel();
    expect(timers.pending).toBe(0);
  }
});

it('ModuleRuntime calls the callbacks of onClose() once', () => {
  const runtime = new ModuleRuntime(new FakeRuntime());
  let calls = 0;
  runtime.onClose(() => (calls += 1));
  runtime.close();
  runtime.close();
  expect(calls).toBe(1);
});

it('WH-31 systemRuntime.environment is the current value of NODE_ENV', () => {
  const before = process.env['NODE_ENV'];
  try {
    process.env['NODE_ENV'] = 'production';
    expect(systemRuntime.environment).toBe('production');
    delete process.env['NODE_ENV'];
    expect(systemRuntime.environment).toBeUndefined();
  } finally {
    if (before !== undefined) process.env['NODE_ENV'] = before;
  }
});
