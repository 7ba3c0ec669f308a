import { describe, expect, it } from '@jest/globals';
import { median, medianOfPairs, quantile } from './statistics.ts';

describe('statistics', () => {
  it('finds the middle of an odd number of values, in whatever order', () => {
    expect(median([30, 10, 20])).toBe(20);
  });

  it('takes the mean of the two in the middle of an even number', () => {
    expect(median([40, 10, 20, 30])).toBe(25);
  });

  it('has no median of nothing', () => {
    expect(median([])).toBeNaN();
  });

  it('sorts by number and leaves the values as they were', () => {
    const values = [100, 9, 8];
    expect(median(values)).toBe(9);
    expect(values).toEqual([100, 9, 8]);
  });

  it('interpolates between two values', () => {
    expect(quantile([0, 10, 20, 30, 40], 0.25)).toBe(10);
    expect(quantile([0, 10], 0.25)).toBe(2.5);
  });

  it('relates the values of one round, and not the medians', () => {
    // The second round was disturbed for both alike.
    const ratio = medianOfPairs([10, 100, 10], [20, 200, 20], (a, b) => a / b);
    expect(ratio).toBe(0.5);
    expect(medianOfPairs([1, 9, 5], [1, 1, 1], (a, b) => a - b)).toBe(4);
  });
});
