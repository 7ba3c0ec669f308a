import { describe, expect, it } from '@jest/globals';
import { measureRoundRobin } from './round-robin.ts';
import type { Contender } from './row.ts';

/** Creates contenders that record their turns. The value of each measurement is the number of turns so far. */
function contenders(...names: string[]): { turns: string[]; all: Contender[] } {
  const turns: string[] = [];
  const all = names.map((name) => ({
    name,
    measure: async () => ({ value: turns.push(name) }),
  }));
  return { turns, all };
}

describe('measureRoundRobin', () => {
  it('measureRoundRobin() measures every contender once per round, in turn', async () => {
    const { turns, all } = contenders('A', 'B', 'C');
    await measureRoundRobin(all, { rounds: 2, warmUp: 0 });
    expect(turns.join(' ')).toBe('A B C A B C');
  });

  it('measureRoundRobin() returns no samples of the warm-up round', async () => {
    const { turns, all } = contenders('A', 'B');
    const samples = await measureRoundRobin(all, { rounds: 2 });
    expect(turns.join(' ')).toBe('A B A B A B');
    expect(samples).toEqual([
      [{ value: 3 }, { value: 5 }],
      [{ value: 4 }, { value: 6 }],
    ]);
  });

  it('measureRoundRobin() measures only one contender at a time', async () => {
    let running = 0;
    const slow: Contender = {
      name: 'slow',
      async measure() {
        running += 1;
        const value = running;
        await new Promise((resolve) => setImmediate(resolve));
        running -= 1;
        return { value };
      },
    };
    const samples = await measureRoundRobin([slow, slow, slow], { rounds: 2 });
    expect(samples.flat().every(({ value }) => value === 1)).toBe(true);
  });

  it('measureRoundRobin() rejects a measurement that is not a finite number', async () => {
    const broken = { name: 'broken', measure: async () => ({ value: 1 / 0 }) };
    await expect(measureRoundRobin([broken], { rounds: 1 })).rejects.toThrow(
      'broken measured Infinity',
    );
  });
});
