import { describe, expect, it } from '@jest/globals';
import { resolveMaxAge, resolveReceiveOptions } from './inbox-options.js';

const DAY = 86_400_000;

describe('resolveReceiveOptions', () => {
  it('WH-23 handles transaction.completed once per transaction unless told otherwise', () => {
    expect([...resolveReceiveOptions({}).oncePerTransaction]).toEqual(['transaction.completed']);
    const oncePerTransaction = ['a', 'b.c', 'a'];
    expect([...resolveReceiveOptions({ oncePerTransaction }).oncePerTransaction]).toEqual([
      'a',
      'b.c',
    ]);
    expect(resolveReceiveOptions({ oncePerTransaction: [] }).oncePerTransaction.size).toBe(0);
  });

  it.each([['transaction.*'], ['*'], [''], ['a\nb'], ['x'.repeat(256)], [5], [null]])(
    'refuses the type %j',
    (type) => {
      const options = { oncePerTransaction: ['a', type as string] };
      expect(() => resolveReceiveOptions(options)).toThrow(
        /"oncePerTransaction" must be a list of exact event types/,
      );
    },
  );

  it.each(['transaction.completed', true, false, null, {}])('refuses %j for a list', (value) => {
    const options = { oncePerTransaction: value as never };
    // null is not "left out": an option that a factory computed wrongly must not turn into the default.
    expect(() => resolveReceiveOptions(options)).toThrow(
      expect.objectContaining({ code: 'options_invalid' }),
    );
  });

  it.each([99, 29_001, 1.5, NaN, '5000'])('refuses a deadline of %p ms', (deadlineMs) => {
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
  ] as const)('SE-09 makes of %p, durable: %p, a limit of %p ms', (option, durable, limit) => {
    expect(resolveMaxAge(option, 30 * DAY, durable)).toBe(limit);
  });

  it('SE-09 rejects a limit above the time for which a durable inbox remembers ids', () => {
    expect(() => resolveMaxAge(30 * DAY + 1, 30 * DAY, true)).toThrow(
      /"webhook\.maxAgeMs" must be at most "worker\.knowMs"; it is 2592000001, .* is 2592000000.*false/,
    );
  });
});
