import { describe, expect, it } from '@jest/globals';
import { FakeRuntime } from '../../../../test/support/time/fake-runtime.js';
import { RateLimit } from './company-lookup.js';

describe('RateLimit', () => {
  const takeAll = (limit: RateLimit) => {
    let taken = 0;
    while (limit.take()) taken += 1;
    return taken;
  };

  it('gives at most perSecond permits within any period of one second', () => {
    const runtime = new FakeRuntime();
    const limit = new RateLimit(3, runtime);
    expect(limit.take()).toBe(true);
    runtime.advance(900);
    expect(takeAll(limit)).toBe(2);
    runtime.advance(99);
    expect(takeAll(limit)).toBe(0);
    runtime.advance(1);
    expect(takeAll(limit)).toBe(1);
    runtime.advance(899);
    expect(takeAll(limit)).toBe(0);
    runtime.advance(1);
    expect(takeAll(limit)).toBe(2);
  });

  it('does not save unused permits for later', () => {
    const runtime = new FakeRuntime();
    const limit = new RateLimit(2, runtime);
    runtime.advance(60_000);
    expect(takeAll(limit)).toBe(2);
  });
});
