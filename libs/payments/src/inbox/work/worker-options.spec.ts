import { describe, expect, it } from '@jest/globals';
import { exponential, none } from '../../events/retry-schedule.js';
import { policyOf, resolveWorkerOptions } from './worker-options.js';

describe('resolveWorkerOptions', () => {
  it.each(['no', 0, null])('worker.background rejects %p', (background) => {
    expect(() => resolveWorkerOptions({ background: background as never })).toThrow(
      /"worker\.background" must be true or false/,
    );
  });

  it('resolveWorkerOptions adds the defaults and freezes the options', () => {
    const resolved = resolveWorkerOptions();
    expect(resolved).toEqual({
      background: true,
      concurrency: 20,
      timeoutMs: 60_000,
      retry: exponential(),
      leaseMs: 20_000,
      drainMs: 20_000,
      retainEventsMs: 7 * 86_400_000,
      retainIdsMs: 30 * 86_400_000,
    });
    expect(Object.isFrozen(resolved)).toBe(true);
  });

  it.each([
    ['concurrency', 0, 1, 1000, 1001],
    ['leaseMs', 999, 1000, 3_600_000, 3_600_001],
    ['timeoutMs', 0, 1, 3_600_000, 3_600_001],
    ['drainMs', -1, 0, 600_000, 600_001],
    ['retainEventsMs', 999, 1000, 31_536_000_000, 31_536_000_001],
    ['retainIdsMs', 604_799_999, 604_800_000, 315_360_000_000, 315_360_000_001],
  ])('worker.%s accepts only numbers within its bounds', (name, below, min, max, above) => {
    for (const value of [min, max])
      expect(resolveWorkerOptions({ [name]: value })).toMatchObject({ [name]: value });
    for (const value of [below, above, 1.5, NaN, '5' as never]) {
      expect(() => resolveWorkerOptions({ [name]: value })).toThrow(`"worker.${name}" must be`);
    }
  });

  it.each([3, 'none', null, {}, { ...exponential(), attempts: 0 }])(
    'worker.retry rejects %p',
    (retry) => {
      const options = { retry: retry as never };
      expect(() => resolveWorkerOptions(options)).toThrow(/PaymentsModule: "worker\.retry"/);
      expect(() => resolveWorkerOptions(options)).toThrow(
        expect.objectContaining({ code: 'options_invalid' }),
      );
    },
  );

  it.each(['maxAttempts', 'firstRetryMs', 'dedupeBy'])(
    'worker rejects the unknown option %p',
    (name) => {
      expect(() => resolveWorkerOptions({ [name]: 5 })).toThrow(`"worker.${name}"`);
    },
  );
});

describe('policyOf', () => {
  it('policyOf prefers the options of the handler to the defaults of the worker', () => {
    const defaults = resolveWorkerOptions();
    expect(policyOf({ options: {} }, defaults)).toEqual({
      concurrency: 20,
      timeoutMs: 60_000,
      retry: exponential(),
    });
    const own = { concurrency: 1, timeoutMs: 5, retry: none };
    expect(policyOf({ options: own }, defaults)).toEqual(own);
  });
});
