import { describe, expect, it } from '@jest/globals';
import {
  addCounts,
  bucketOf,
  HANDLED_BOUNDS_MS,
  noCounts,
  quantileMs,
  toActivity,
} from './activity.minutes.js';

/** A histogram of these times. */
function within(...tookMs: number[]): number[] {
  const counts = noCounts().handledWithin;
  for (const ms of tookMs) counts[bucketOf(ms)]! += 1;
  return counts;
}

describe('bucketOf', () => {
  it('takes each bound into its own bucket, what is above into the next, and the longest into the last', () => {
    HANDLED_BOUNDS_MS.forEach((bound, place) => {
      expect(bucketOf(bound)).toBe(place);
      expect(bucketOf(bound + 0.01)).toBe(Math.min(place + 1, HANDLED_BOUNDS_MS.length - 1));
    });
    for (const ms of [0, -5, 0.3]) expect(bucketOf(ms)).toBe(0);
    expect(bucketOf(Infinity)).toBe(HANDLED_BOUNDS_MS.length - 1);
  });
});

describe('quantileMs', () => {
  it('is the bound that the share is within', () => {
    expect(quantileMs(within(3), 0.5)).toBe(5);
    expect(quantileMs(within(1, 100), 0.5)).toBe(1);
    expect(quantileMs(within(1, 100, 100), 0.5)).toBe(100);
    const hundred = Array.from({ length: 100 }, (_, index) => (index < 95 ? 10 : 1000));
    expect(quantileMs(within(...hundred), 0.95)).toBe(10);
    expect(quantileMs(within(...hundred, 1000), 0.95)).toBe(1000);
  });

  it('is null where nothing was counted', () => {
    expect(quantileMs(within(), 0.5)).toBeNull();
    expect(quantileMs([], 0.95)).toBeNull();
  });
});

describe('toActivity', () => {
  const now = Date.UTC(2026, 10, 20, 12, 3, 59, 999);

  it('fills the gaps, and leaves out what is older than asked for or not yet', () => {
    const at = (minute: number) => Date.UTC(2026, 10, 20, 12, minute);
    const recorded = [0, 1, 3, 4].map((minute) => ({
      ...addCounts(noCounts(), { ...noCounts(), received: 10 + minute }),
      at: at(minute),
    }));
    const minutes = toActivity(recorded, now, 3);
    expect(minutes.map((one) => [one.at.getTime(), one.received])).toEqual([
      [at(1), 11],
      [at(2), 0],
      [at(3), 13],
    ]);
  });

  it('adds histograms of different lengths', () => {
    const sum = addCounts(
      { ...noCounts(), handledWithin: [1] },
      { ...noCounts(), handledWithin: [2, 5] },
    );
    expect(sum.handledWithin.slice(0, 3)).toEqual([3, 5, 0]);
    expect(sum.handledWithin).toHaveLength(HANDLED_BOUNDS_MS.length);
  });
});
