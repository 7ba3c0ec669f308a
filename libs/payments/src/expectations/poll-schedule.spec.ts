import { describe, expect, it } from '@jest/globals';
import * as fc from 'fast-check';
import { FakeRuntime } from '../../../../test/support/time/fake-runtime.js';
import {
  firstPollInMs,
  isPollSchedule,
  nextPollInMs,
  overduePollInMs,
  PollLimits,
} from './poll-schedule.js';

const createdAt = new Date(0);

describe('nextPollInMs', () => {
  it('EX-03 nextPollInMs() plans one poll for each delay of a schedule, and then the expectation is overdue', () => {
    const delay = fc.integer({ min: 1000, max: 86_400_000 });
    const random = fc.double({ min: 0, max: 0.999_999, noNaN: true });
    const schedules = fc.uniqueArray(delay, { minLength: 1, maxLength: 10 });
    fc.assert(
      fc.property(
        schedules,
        fc.array(random, { minLength: 20, maxLength: 20 }),
        (delays, chance) => {
          // Delays that are so far apart that jitter cannot change their order.
          const schedule = delays.toSorted((a, b) => a - b).map((ms, n) => ms * 2 ** n);
          const times = { schedule, dueBy: null, createdAt };
          let elapsedMs = firstPollInMs({ schedule, dueInMs: null }, chance[0]!);
          for (const [n, ms] of schedule.entries()) {
            expect(elapsedMs).toBeGreaterThanOrEqual(ms * 0.9);
            expect(elapsedMs).toBeLessThanOrEqual(ms * 1.1 + 1);
            const next = nextPollInMs(times, { polls: n + 1, elapsedMs }, chance[n + 1]!);
            if (n === schedule.length - 1) expect(next).toBe('overdue');
            else elapsedMs += next as number;
          }
        },
      ),
    );
  });

  it.each([
    ['on time', 1, 1000, 1000],
    ['one day late', 1, 86_400_000, 1000],
    ['one day late', 2, 86_400_000, 1000],
    ['one day late', 3, 86_400_000, 7000],
    ['one day late', 4, 86_400_000, 'overdue'],
    ['after two other polls', 3, 1000, 1000],
    ['after nine other polls', 10, 3000, 7000],
  ])(
    'EX-03 EX-07 nextPollInMs() skips no poll of the schedule (%s): after %d polls and %d ms, the next poll is in %p ms',
    (_, polls, elapsedMs, next) => {
      const times = { schedule: [1000, 2000, 3000, 10_000], dueBy: null, createdAt };
      expect(nextPollInMs(times, { polls, elapsedMs }, 0.5)).toBe(next);
    },
  );

  it.each([
    [0, 5000],
    [4999, 1],
    [5000, 'overdue'],
    [60_000, 'overdue'],
  ])(
    'EX-07 if dueBy is 5,000 ms after the creation, nextPollInMs() called %d ms after the creation returns %p',
    (elapsedMs, next) => {
      const times = { schedule: [60_000], dueBy: new Date(5000), createdAt };
      expect(nextPollInMs(times, { polls: 1, elapsedMs }, 0.5)).toBe(next);
    },
  );

  it.each([
    [null, 1000],
    [500, 500],
    [-500, 0],
  ])('EX-03 firstPollInMs(), with dueInMs %p, returns %d ms', (dueInMs, inMs) => {
    expect(firstPollInMs({ schedule: [1000], dueInMs }, 0.5)).toBe(inMs);
  });
});

it.each([
  [0, 1],
  [1, 1],
  [10, 10],
  [100, 24],
  [720, 24],
  [721, null],
])(
  'EX-07 if the service gives no answer, a payment that has been overdue for %d h is polled again in %p h',
  (overdueH, inH) => {
    const HOUR = 3_600_000;
    const elapsedMs = 2 * HOUR + overdueH * HOUR;
    for (const dueBy of [null, new Date(2 * HOUR)]) {
      const schedule = dueBy === null ? [1000, 2 * HOUR] : [1000, 24 * HOUR];
      const inMs = overduePollInMs({ schedule, dueBy, createdAt }, elapsedMs, 0.5);
      expect(inMs).toBe(inH === null ? null : inH * HOUR);
    }
  },
);

it.each([
  [undefined],
  [[]],
  [[-1]],
  [[1.5]],
  [[1, 1]],
  [['1']],
  [[31_536_000_001]],
  [Array.from({ length: 101 }, (_, n) => n)],
])('EX-03 isPollSchedule() rejects the schedule %j', (schedule) => {
  expect(isPollSchedule(schedule)).toBe(false);
});

describe('PollLimits', () => {
  const limitsOf = (maxPollsPerSecond: number, concurrency = 100) => {
    const runtime = new FakeRuntime();
    const limits = new PollLimits({ maxPollsPerSecond, concurrency }, runtime);
    return { runtime, limits };
  };

  it('EX-03 PollLimits starts as many polls per second as its limit allows, and postpones each further poll to a different time', () => {
    const { runtime, limits } = limitsOf(2);
    expect([1, 2, 3, 4, 5].map(() => limits.admit('a'))).toEqual([0, 0, 500, 1000, 1500]);
    expect(limits.admit('b')).toBe(0);
    runtime.advance(500);
    expect(limits.admit('a')).toBe(0);
    expect(limits.admit('a')).toBe(1500);
  });

  it('EX-03 after a pause, PollLimits starts at most as many polls at once as its limit allows', () => {
    const { runtime, limits } = limitsOf(2);
    limits.admit('a');
    runtime.advance(3_600_000);
    expect([1, 2, 3].map(() => limits.admit('a'))).toEqual([0, 0, 500]);
  });

  it('EX-19 if too many polls of a company are still running, PollLimits postpones further polls of this company, and of no other company', () => {
    const { runtime, limits } = limitsOf(10, 2);
    expect([1, 2, 3].map(() => limits.admit('hangs'))).toEqual([0, 0, 100]);
    runtime.advance(60_000);
    expect(limits.admit('hangs')).toBe(100);
    expect(limits.admit('other')).toBe(0);
    limits.ended('hangs');
    expect(limits.admit('hangs')).toBe(0);
  });

  it('EX-20 if the service of a company asks for a wait, PollLimits starts no poll of this company until the wait is over', () => {
    const { runtime, limits } = limitsOf(1);
    limits.refuse('a', 5000);
    expect(limits.admit('a')).toBe(6000);
    expect(limits.admit('b')).toBe(0);
    runtime.advance(5001);
    expect(limits.admit('a')).toBe(0);
  });

  it('EX-03 with more than 1,000 companies, PollLimits deletes only the companies without polls', () => {
    const { runtime, limits } = limitsOf(1);
    for (let n = 0; n < 1000; n += 1) {
      limits.admit(String(n));
      if (n > 0) limits.ended(String(n));
    }
    runtime.advance(1000);
    expect(limits.admit('0')).toBe(0);
    limits.admit('new');
    expect(limits.admit('0')).toBe(1000);
  });
});
