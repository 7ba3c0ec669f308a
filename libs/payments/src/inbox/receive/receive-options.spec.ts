import { describe, expect, it } from '@jest/globals';
import { resolveMaxAge, resolveReceiveOptions } from './receive-options.js';

const DAY = 86_400_000;

describe('resolveReceiveOptions', () => {
  it('WH-23 oncePerTransaction contains only transaction.completed by default', () => {
    expect([...resolveReceiveOptions({}).oncePerTransaction]).toEqual(['transaction.completed']);
    const oncePerTransaction = ['a', 'b.c', 'a'];
    expect([...resolveReceiveOptions({ oncePerTransaction }).oncePerTransaction]).toEqual([
      'a',
      'b.c',
    ]);
    expect(resolveReceiveOptions({ oncePerTransaction: [] }).oncePerTransaction.size).toBe(0);
  });

  it.each([['transaction.*'], ['*'], [''], ['a\nb'], ['x'.repeat(256)], [5], [null]])(
    'oncePerTransaction rejects the type %j',
    (type) => {
      const options = { oncePerTransaction: ['a', type as string] };
      expect(() => resolveReceiveOptions(options)).toThrow(
        /"oncePerTransaction" must be a list of exact event types/,
      );
    },
  );

  it.each(['transaction.completed', true, false, null, {}])(
    'oncePerTransaction rejects %j, which is not a list',
    (value) => {
      const options = { oncePerTransaction: value as never };
      // The default applies only to undefined, because a null may come from a factory that failed to compute the
      // option.
      expect(() => resolveReceiveOptions(options)).toThrow(
        expect.objectContaining({ code: 'options_invalid' }),
      );
    },
  );

  it.each([99, 29_001, 1.5, NaN, '5000'])('deadlineMs rejects %p', (deadlineMs) => {
    const options = { deadlineMs: deadlineMs as number };
    expect(() => resolveReceiveOptions(options)).toThrow(
      '"deadlineMs" must be a whole number of milliseconds from 100 to 29000',
    );
  });
});

describe('resolveMaxAge', () => {
  it.each([
    [undefined, true, 30 * DAY],
    [DAY, true, DAY],
    [30 * DAY, true, 30 * DAY],
    [false, true, Infinity],
    [undefined, false, Infinity],
    [90 * DAY, false, 90 * DAY],
    [false, false, Infinity],
  ] as const)(
    'SE-09 resolveMaxAge() for the option %p, with durable %p, returns %p ms',
    (option, durable, limit) => {
      expect(resolveMaxAge(option, 30 * DAY, durable)).toBe(limit);
    },
  );

  it('SE-09 webhook.maxAgeMs must be at most worker.retainIdsMs in a durable inbox', () => {
    expect(() => resolveMaxAge(30 * DAY + 1, 30 * DAY, true)).toThrow(
      /"webhook\.maxAgeMs" must be at most "worker\.retainIdsMs"; it is 2592000001, .* is 2592000000.*false/,
    );
  });
});
