import { describe, expect, it } from '@jest/globals';
import { checkRetrySchedule, exponential, fixed, nextRetryMs, none } from './retry-schedule.js';

const HOUR = 3_600_000;

describe('exponential', () => {
  it('IN-18 exponential() allows 16 attempts, and the wait after attempt n is n^4 seconds times a factor from 1 to 2', () => {
    const schedule = exponential();
    for (let attempt = 1; attempt <= 15; attempt += 1) {
      expect(nextRetryMs(schedule, attempt, 0)).toBe(attempt ** 4 * 1000);
      expect(nextRetryMs(schedule, attempt, 0.5)).toBe(attempt ** 4 * 1500);
      expect(nextRetryMs(schedule, attempt, 0.999_999)).toBeLessThanOrEqual(attempt ** 4 * 2000);
    }
    for (const attempt of [16, 17, 1000]) expect(nextRetryMs(schedule, attempt, 0.5)).toBeNull();
  });

  it('IN-18 exponential() waits about three days in total by default', () => {
    const totalMs = (random: number) =>
      Array.from({ length: 15 }, (_, n) => nextRetryMs(exponential(), n + 1, random)!).reduce(
        (sum, waitMs) => sum + waitMs,
      );
    expect(totalMs(0.5) / HOUR).toBeCloseTo(74.3, 1);
    expect(totalMs(0) / HOUR).toBeGreaterThan(48);
    expect(totalMs(0.999_999) / HOUR).toBeLessThan(100);
  });

  it('exponential() limits the wait to maxMs before jitter, and returns whole milliseconds', () => {
    const schedule = exponential({ attempts: 1000, firstMs: 10, exponent: 1.5, maxMs: 100 });
    expect([1, 2, 4, 5, 999].map((attempt) => nextRetryMs(schedule, attempt, 0))).toEqual([
      10, 28, 80, 100, 100,
    ]);
    expect(nextRetryMs(schedule, 999, 0.5)).toBe(150);
    const steep = exponential({ attempts: 1000, firstMs: 86_400_000, exponent: 10 });
    expect(nextRetryMs(steep, 999, 0)).toBe(86_400_000);
  });

  it.each([
    ['attempts', 0, 1, 1000, 1001],
    ['firstMs', 0, 1, 86_400_000, 86_400_001],
    ['maxMs', 0, 1, 604_800_000, 604_800_001],
    ['exponent', -0.1, 0, 10, 10.1],
  ])(
    'exponential() rejects a value of "%s" that is out of bounds',
    (field, below, min, max, above) => {
      for (const value of [min, max]) expect(() => exponential({ [field]: value })).not.toThrow();
      for (const value of [below, above, NaN, '5' as never]) {
        expect(() => exponential({ [field]: value })).toThrow(`"exponential.${field}" must be`);
      }
    },
  );
});

describe('fixed', () => {
  it('IN-18 fixed() waits exactly as listed, and allows one attempt more than the number of waits', () => {
    const schedule = fixed([1000, 0, 60_000]);
    expect([1, 2, 3, 4].map((attempt) => nextRetryMs(schedule, attempt, 0.9))).toEqual([
      1000,
      0,
      60_000,
      null,
    ]);
    expect(schedule.attempts).toBe(4);
  });

  it('fixed() allows one attempt if the list of waits is empty, like the schedule `none`', () => {
    expect(fixed([])).toEqual(none);
    expect(nextRetryMs(none, 1, 0)).toBeNull();
  });

  it.each([
    [[-1]],
    [[1.5]],
    [[604_800_001]],
    [['5']],
    [Array.from({ length: 1000 }, () => 1)],
    [5],
    [undefined],
  ])('fixed() rejects the waits %j', (waitsMs) => {
    expect(() => fixed(waitsMs as never)).toThrow(/^fixed\(\)/);
  });

  it('fixed() copies the list of waits and freezes the copy', () => {
    const waitsMs = [5];
    const schedule = fixed(waitsMs);
    waitsMs.push(6);
    expect(schedule.waitsMs).toEqual([5]);
    expect(Object.isFrozen(schedule) && Object.isFrozen(schedule.waitsMs)).toBe(true);
  });
});

describe('checkRetrySchedule', () => {
  it.each([null, 5, 'exponential', {}, { ...fixed([5]), jitter: 2 }])(
    'checkRetrySchedule() rejects %j, which is not a retry schedule',
    (value) => {
      expect(() => checkRetrySchedule('retry', value)).toThrow(
        '"retry" must be a retry schedule: exponential(…), fixed([…]) or none; it is',
      );
    },
  );

  it('checkRetrySchedule() rejects a fixed schedule whose number of attempts does not match its waits', () => {
    const schedule = { ...fixed([5]), attempts: 5 };
    expect(() => checkRetrySchedule('retry', schedule)).toThrow('"retry" must be a retry schedule');
  });
});
