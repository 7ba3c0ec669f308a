import { describe, expect, it } from '@jest/globals';
import { backoffMs, resolveWorkerOptions } from './worker-options.js';

const POLICY = { firstRetryMs: 1000, maxRetryMs: 3_600_000 };

describe('backoffMs', () => {
  it('doubles its bound with each attempt, up to the greatest', () => {
    const bounds = [1, 2, 3, 12, 13, 15].map((attempt) => backoffMs(attempt, POLICY, 1));
    expect(bounds).toEqual([1000, 2000, 4000, 2_048_000, 3_600_000, 3_600_000]);
  });

  it('draws a whole number of milliseconds from 0 to the bound', () => {
    for (const chance of [0, 0.123_456_789, 0.5, 0.999_999]) {
      for (let attempt = 1; attempt <= 1000; attempt += 1) {
        const waitMs = backoffMs(attempt, POLICY, chance);
        expect(Number.isSafeInteger(waitMs)).toBe(true);
        expect(waitMs).toBeGreaterThanOrEqual(0);
        expect(waitMs).toBeLessThanOrEqual(3_600_000);
      }
    }
    expect(backoffMs(1, POLICY, 0)).toBe(0);
  });

  it('is bounded by the greatest wait from the first attempt on', () => {
    expect(backoffMs(1, { firstRetryMs: 5000, maxRetryMs: 100 }, 1)).toBe(100);
  });

  it('stays finite beyond what a power of two can be', () => {
    expect(backoffMs(5000, POLICY, 1)).toBe(3_600_000);
  });
});

describe('resolveWorkerOptions', () => {
  it.each(['no', 0, null])('refuses %p for "background"', (background) => {
    expect(() => resolveWorkerOptions({ background: background as never })).toThrow(
      /"worker\.background" must be true or false/,
    );
  });

  it('completes and freezes', () => {
    const resolved = resolveWorkerOptions();
    expect(resolved).toEqual({
      background: true,
      concurrency: 20,
      leaseMs: 60_000,
      maxAttempts: 15,
      firstRetryMs: 1000,
      maxRetryMs: 3_600_000,
      drainMs: 20_000,
      keepMs: 7 * 86_400_000,
      knowMs: 30 * 86_400_000,
    });
    expect(Object.isFrozen(resolved)).toBe(true);
  });

  it.each([
    ['concurrency', 0, 1, 1000, 1001],
    ['leaseMs', 999, 1000, 3_600_000, 3_600_001],
    ['maxAttempts', 0, 1, 1000, 1001],
    ['firstRetryMs', 0, 1, 3_600_000, 3_600_001],
    ['maxRetryMs', 0, 1, 86_400_000, 86_400_001],
    ['drainMs', -1, 0, 600_000, 600_001],
    ['keepMs', 999, 1000, 31_536_000_000, 31_536_000_001],
    ['knowMs', 604_799_999, 604_800_000, 315_360_000_000, 315_360_000_001],
    ['keepMs', 999, 1000, 365 * 86_400_000, 365 * 86_400_000 + 1],
    ['knowMs', 7 * 86_400_000 - 1, 7 * 86_400_000, 3650 * 86_400_000, 3650 * 86_400_000 + 1],
  ])('holds %s to its bounds', (name, below, min, max, above) => {
    for (const value of [min, max])
      expect(resolveWorkerOptions({ [name]: value })).toMatchObject({ [name]: value });
    for (const value of [below, above, 1.5, NaN, '5' as never]) {
      expect(() => resolveWorkerOptions({ [name]: value })).toThrow(`"worker.${name}" must be`);
    }
  });
});
