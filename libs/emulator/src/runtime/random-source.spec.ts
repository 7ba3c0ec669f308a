import { describe, expect, it } from '@jest/globals';
import { RandomSource } from './random-source.js';

describe('RandomSource', () => {
  it('RandomSource returns the same values for the same seed, and other values for another seed', () => {
    const draw = (seed: string | number) => {
      const random = new RandomSource(seed);
      return [random.uuid('event'), random.secret('s_', 'client'), random.stream('x').float()];
    };
    expect(draw(7)).toEqual(draw(7));
    expect(draw(7)).toEqual(draw('7'));
    expect(draw(7)[0]).not.toBe(draw(8)[0]);
    expect(draw(7)[2]).not.toBe(draw(8)[2]);
  });

  it('RandomSource generates a seed of 32 bytes by default, and exposes it', () => {
    const random = new RandomSource();
    expect(random.seed).toMatch(/^[0-9a-f]{64}$/);
    expect(new RandomSource(random.seed).uuid('event')).toBe(random.uuid('event'));
    expect(new RandomSource().seed).not.toBe(random.seed);
  });

  it('RandomSource returns valid UUIDs without duplicates', () => {
    const random = new RandomSource(1);
    const ids = Array.from({ length: 100 }, () => random.uuid('event'));
    expect(new Set(ids).size).toBe(100);
    for (const id of ids) {
      expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    }
  });

  it('RandomSource keeps streams independent of each other', () => {
    const alone = new RandomSource(1).stream('b').float();
    const random = new RandomSource(1);
    random.stream('a').float();
    random.uuid('event');
    expect(random.stream('b').float()).toBe(alone);
  });

  it('RandomSource draws integers between both bounds, including the bounds', () => {
    const stream = new RandomSource(1).stream('numbers');
    const drawn = new Set(Array.from({ length: 200 }, () => stream.int(1, 3)));
    expect(drawn).toEqual(new Set([1, 2, 3]));
  });

  it('RandomSource repeats its ids after a reset', () => {
    const random = new RandomSource(1);
    const first = random.uuid('event');
    random.uuid('event');
    random.reset();
    expect(random.uuid('event')).toBe(first);
  });
});
