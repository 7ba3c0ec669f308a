import { describe, expect, it } from '@jest/globals';
import { RandomSource } from '../runtime/random-source.js';
import { CompanyFaults, drawDelay } from './company-faults.js';
import type { FaultTrigger } from './fault-plan.js';

const newStream = () => new RandomSource(1).stream('numbers');

function decisions(trigger: FaultTrigger | undefined, times: number): boolean[] {
  const company = new CompanyFaults({ delivery: { drop: trigger } });
  const random = newStream();
  return Array.from({ length: times }, () => company.applies(trigger, random));
}

describe('CompanyFaults', () => {
  it('CompanyFaults never applies a fault that is not in the plan, and always applies a fault without limits', () => {
    expect(decisions(undefined, 3)).toEqual([false, false, false]);
    expect(decisions({}, 3)).toEqual([true, true, true]);
  });

  it('CompanyFaults applies a fault with `next: 2` exactly twice, and never applies a fault with `next: 0`', () => {
    expect(decisions({ next: 2 }, 4)).toEqual([true, true, false, false]);
    expect(decisions({ next: 0 }, 2)).toEqual([false, false]);
  });

  it('CompanyFaults applies a fault with `probability` at random, and the same seed repeats the decisions', () => {
    const applied = decisions({ probability: 0.3 }, 1000);
    expect(applied.filter(Boolean).length).toBeGreaterThan(240);
    expect(applied.filter(Boolean).length).toBeLessThan(360);
    expect(decisions({ probability: 0.3 }, 1000)).toEqual(applied);
    expect(decisions({ probability: 0 }, 100)).not.toContain(true);
    expect(decisions({ probability: 1 }, 100)).not.toContain(false);
  });

  it('if a fault has `next: 2` and a probability, CompanyFaults applies the fault twice, and then at random', () => {
    expect(decisions({ next: 2, probability: 0 }, 4)).toEqual([true, true, false, false]);
  });

  it('CompanyFaults returns the plan with the remaining counts in the field `next`', () => {
    const plan = { delivery: { drop: { next: 2 }, redeliver: [1] }, api: { reset: { next: 5 } } };
    const company = new CompanyFaults(plan);
    company.applies(plan.delivery.drop, newStream());
    expect(company.remaining()).toEqual({
      delivery: { drop: { next: 1 }, redeliver: [1] },
      api: { reset: { next: 5 } },
    });
  });
});

describe('drawDelay', () => {
  it('drawDelay() returns the given value, or a value within the given range', () => {
    expect(drawDelay(250, newStream())).toBe(250);
    const drawn = drawDelay([10, 20], newStream());
    expect(drawn).toBeGreaterThanOrEqual(10);
    expect(drawn).toBeLessThanOrEqual(20);
  });
});
