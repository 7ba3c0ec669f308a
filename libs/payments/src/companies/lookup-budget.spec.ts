import { describe, expect, it } from '@jest/globals';
import { ThrottledLog } from '../errors/module-log.js';
import { FakeRuntime } from '../../../../test/support/time/fake-runtime.js';
import { LookupBudget, RateLimit } from './directory-companies.js';

describe('LookupBudget', () => {
  it('SE-06 LookupBudget exempts the 100,000 verified ids that were used last, and no older ids', async () => {
    const runtime = new FakeRuntime();
    const log = new ThrottledLog({ warn: () => {}, error: () => {} }, runtime);
    const budget = new LookupBudget(1, runtime, log);
    const lookUp = async (id: string) => budget.start(id, async () => id);
    for (let n = 0; n < 100_000; n += 1) budget.exempt(`c-${n}`);
    budget.exempt('c-0');
    budget.exempt('c-100000');
    expect(await lookUp('stranger')).toBe('stranger');
    expect(await lookUp('c-0')).toBe('c-0');
    expect(await lookUp('c-2')).toBe('c-2');
    await expect(lookUp('c-1')).rejects.toMatchObject({ code: 'directory_unavailable' });
  });
});

describe('RateLimit', () => {
  const takeAll = (limit: RateLimit) => {
    let taken = 0;
    while (limit.take()) taken += 1;
    return taken;
  };

  it('RateLimit gives at most perSecond permits within any period of one second', () => {
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

  it('RateLimit does not save unused permits for later', () => {
    const runtime = new FakeRuntime();
    const limit = new RateLimit(2, runtime);
    runtime.advance(60_000);
    expect(takeAll(limit)).toBe(2);
  });
});
