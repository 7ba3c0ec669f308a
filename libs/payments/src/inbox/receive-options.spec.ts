import { describe, expect, it } from '@jest/globals';
import { resolveReceiveOptions } from './receive-options.js';

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
