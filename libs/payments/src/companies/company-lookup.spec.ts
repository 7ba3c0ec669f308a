import { describe, expect, it } from '@jest/globals';
import { ThrottledLog } from '../errors/throttled-log.js';
import { FakeRuntime } from '../../../../test/support/time/fake-runtime.js';
import { LookupBudget } from './company-lookup.js';

describe('LookupBudget', () => {
  it('SE-06 exempts the 100,000 verified ids that were used last, and no older one', async () => {
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
