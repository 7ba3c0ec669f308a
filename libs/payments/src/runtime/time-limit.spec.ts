import { describe, expect, it } from '@jest/globals';
import { FakeRuntime } from '../../../../test/support/time/fake-runtime.js';
import { withTimeLimit } from './time-limit.js';

describe('withTimeLimit', () => {
  const late = () => new Error('late');

  it('settles as the work does, and leaves no timer', async () => {
    const runtime = new FakeRuntime();
    await expect(withTimeLimit(Promise.resolve(7), 10, runtime, late)).resolves.toBe(7);
    const failure = Promise.reject(new Error('failed'));
    await expect(withTimeLimit(failure, 10, runtime, late)).rejects.toThrow('failed');
    expect(runtime.pending).toBe(0);
  });

  it.each([10, -1])('rejects after %p ms, and ignores how the work ends', async (ms) => {
    const runtime = new FakeRuntime();
    const { promise, reject } = Promise.withResolvers<never>();
    const limited = withTimeLimit(promise, ms, runtime, late);
    runtime.advance(10);
    reject(new Error('failed'));
    await expect(limited).rejects.toThrow('late');
  });
});
