import { describe, expect, it } from '@jest/globals';
import { interleave } from './interleave.ts';
import type { Contender } from './row.ts';

/** Contenders that note their turns, and measure how many there have been. */
function contenders(...names: string[]): { turns: string[]; all: Contender[] } {
  const turns: string[] = [];
  const all = names.map((name) => ({
    name,
    measure: async () => ({ value: turns.push(name) }),
  }));
  return { turns, all };
}

describe('interleaving', () => {
  it('measures every contender once a round, in turn', async () => {
    const { turns, all } = contenders('A', 'B', 'C');
    await interleave(all, { rounds: 2, warmUp: 0 });
    expect(turns.join(' ')).toBe('A B C A B C');
  });

  it('warms up for as many rounds as it is told', async () => {
    const { all } = contenders('A', 'B');
    expect(await interleave(all, { rounds: 1, warmUp: 3 })).toEqual([
      [{ value: 7 }],
      [{ value: 8 }],
    ]);
  });

  it('does not count the round that warms up', async () => {
    const { turns, all } = contenders('A', 'B');
    const samples = await interleave(all, { rounds: 2 });
    expect(turns.join(' ')).toBe('A B A B A B');
    expect(samples).toEqual([
      [{ value: 3 }, { value: 5 }],
      [{ value: 4 }, { value: 6 }],
    ]);
  });

  it('begins the next only when the one before it has ended', async () => {
    let under = 0;
    const slow: Contender = {
      name: 'slow',
      async measure() {
        under += 1;
        const value = under;
        await new Promise((resolve) => setImmediate(resolve));
        under -= 1;
        return { value };
      },
    };
    const samples = await interleave([slow, slow, slow], { rounds: 2 });
    expect(samples.flat().every(({ value }) => value === 1)).toBe(true);
  });

  it('takes no figure that is none', async () => {
    const broken = { name: 'broken', measure: async () => ({ value: 1 / 0 }) };
    await expect(interleave([broken], { rounds: 1 })).rejects.toThrow('broken measured Infinity');
  });
});
