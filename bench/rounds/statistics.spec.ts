import { describe, expect, it } from '@jest/globals';
import { median, medianOfPairs, quantile } from './statistics.ts';

describe('statistics', () => {
  it('median is the middle of an odd number of values, in any order', () => {
    expect(median([30, 10, 20])).toBe(20);
  });

  it('median is the mean of the two middle values of an even number of values', () => {
    expect(median([40, 10, 20, 30])).toBe(25);
  });

  it('median of no values is NaN', () => {
    expect(median([])).toBeNaN();
  });

  it('median sorts numerically and does not change its argument', () => {
    const values = [100, 9, 8];
    expect(median(values)).toBe(9);
    expect(values).toEqual([100, 9, 8]);
  });

  it('quantile interpolates between two values', () => {
    expect(quantile([0, 10, 20, 30, 40], 0.25)).toBe(10);
    expect(quantile([0, 10], 0.25)).toBe(2.5);
  });

  it('medianOfPairs compares the two values of each round and returns the median of these comparisons, not a comparison of the medians', () => {
    // Other load slowed both contenders down in the second round.
    const ratio = medianOfPairs([10, 100, 10], [20, 200, 20], (a, b) => a / b);
    expect(ratio).toBe(0.5);
    expect(medianOfPairs([1, 9, 5], [1, 1, 1], (a, b) => a - b)).toBe(4);
  });
});
