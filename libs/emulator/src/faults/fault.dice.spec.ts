import { describe, expect, it } from '@jest/globals';
import { RandomSource } from '../random/random.source.js';
import { drawDelay, FaultDice, reorder } from './fault.dice.js';
import type { FaultTrigger } from './fault.plan.js';

const dice = () => new RandomSource(1).stream('dice');

function strikes(trigger: FaultTrigger | undefined, times: number): boolean[] {
  const company = new FaultDice({ delivery: { drop: trigger } });
  const stream = dice();
  return Array.from({ length: times }, () => company.strikes(trigger, stream));
}

describe('FaultDice', () => {
  it('never strikes where there is no fault, and always where nothing limits it', () => {
    expect(strikes(undefined, 3)).toEqual([false, false, false]);
    expect(strikes({}, 3)).toEqual([true, true, true]);
  });

  it('strikes the next n times, then no more', () => {
    expect(strikes({ next: 2 }, 4)).toEqual([true, true, false, false]);
    expect(strikes({ next: 0 }, 2)).toEqual([false, false]);
  });

  it('strikes by its probability, the same way again for the same seed', () => {
    const struck = strikes({ probability: 0.3 }, 1000);
    expect(struck.filter(Boolean).length).toBeGreaterThan(240);
    expect(struck.filter(Boolean).length).toBeLessThan(360);
    expect(strikes({ probability: 0.3 }, 1000)).toEqual(struck);
    expect(strikes({ probability: 0 }, 100)).not.toContain(true);
    expect(strikes({ probability: 1 }, 100)).not.toContain(false);
  });

  it('strikes the next n times for certain and by its probability after that', () => {
    expect(strikes({ next: 2, probability: 0 }, 4)).toEqual([true, true, false, false]);
  });

  it('tells what is left of each count', () => {
    const plan = { delivery: { drop: { next: 2 }, redeliver: [1] }, api: { reset: { next: 5 } } };
    const company = new FaultDice(plan);
    company.strikes(plan.delivery.drop, dice());
    expect(company.remaining()).toEqual({
      delivery: { drop: { next: 1 }, redeliver: [1] },
      api: { reset: { next: 5 } },
    });
  });
});

describe('reorder', () => {
  it('never answers the order it was given, and loses nothing', () => {
    const random = new RandomSource(1);
    for (let run = 0; run < 200; run++) {
      const items = Array.from({ length: 2 + (run % 4) }, (_, index) => index);
      const reordered = reorder(items, random.stream(run));
      expect(reordered).not.toEqual(items);
      expect(reordered).toHaveLength(items.length);
      expect(new Set(reordered)).toEqual(new Set(items));
    }
  });

  it('leaves nothing and a single item as they are', () => {
    expect(reorder([], dice())).toEqual([]);
    expect(reorder(['only'], dice())).toEqual(['only']);
  });
});

describe('drawDelay', () => {
  it('is the value, or within the range', () => {
    expect(drawDelay(250, dice())).toBe(250);
    const drawn = drawDelay([10, 20], dice());
    expect(drawn).toBeGreaterThanOrEqual(10);
    expect(drawn).toBeLessThanOrEqual(20);
  });
});
