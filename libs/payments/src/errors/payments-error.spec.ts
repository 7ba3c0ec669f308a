import { describe, expect, it } from '@jest/globals';
import {
  ownFramesOf,
  describeError,
  framesOf,
  isUnrecoverable,
  PaymentsError,
  UnrecoverableError,
} from './payments-error.js';

function revoked(): object {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
}

const hostile = new Proxy(new Error('x'), {
  get: () => {
    throw new Error('hostile');
  },
});

describe('describeError', () => {
  it('describeError() contains name, code, message and causes of an error', () => {
    const cause = Object.assign(new Error('refused'), { code: 'ECONNREFUSED' });
    expect(describeError(new TypeError('fetch failed', { cause }))).toBe(
      'TypeError: fetch failed (cause: Error (ECONNREFUSED): refused)',
    );
    expect(describeError(new PaymentsError('data_invalid', 'no'))).toBe(
      'PaymentsError (data_invalid): no',
    );
    expect(describeError(new Error('x', { cause: 'text' }))).toBe('Error: x (cause: text)');
  });

  it.each([42, { a: 1 }, 'two words', 'x'.repeat(65), ''])(
    'describeError() leaves out %j, which is not a valid error code',
    (code) => {
      expect(describeError(Object.assign(new Error('x'), { code }))).toBe('Error: x');
    },
  );

  it('describeError() contains only the message of an object that is not an error', () => {
    expect(describeError({ message: 'm', card: '4242' })).toBe('m');
    expect(describeError({ card: '4242' })).not.toContain('4242');
    expect(describeError({ message: { card: '4242' } })).not.toContain('4242');
    expect(describeError(['4242'])).not.toContain('4242');
  });

  it('describeError() returns one line of at most 1,000 characters that a database can store, for any input', () => {
    const inner = new Error('i'.repeat(5000));
    for (const thrown of [
      new Error('m'.repeat(10_000_000), { cause: inner }),
      'a\nb\u0085c\u2028d\0'.repeat(1000),
      '\ud83d'.repeat(2000),
      `${'x'.repeat(998)}😀😀`,
      Symbol('s'.repeat(5000)),
      10n ** 5000n,
      () => '4242',
    ]) {
      const line = describeError(thrown);
      expect(line.length).toBeLessThanOrEqual(1000);
      expect(line).not.toMatch(/[\p{Cc}\u2028\u2029]/u);
      expect(line.isWellFormed()).toBe(true);
    }
  });

  it('describeError() returns a fixed text for a value whose getters throw', () => {
    const getter = {
      get message(): never {
        throw new Error('x');
      },
    };
    for (const thrown of [revoked(), hostile, getter, new Error('x', { cause: hostile })]) {
      expect(describeError(thrown)).toBe('something that cannot be described was thrown');
    }
  });
});

describe('ownFramesOf', () => {
  const withStack = (...frames: string[]) =>
    Object.assign(new Error('x'), { stack: ['Error: x', ...frames].join('\n    at ') });

  it('OP-12 ownFramesOf() returns only frames of the application, with relative paths', () => {
    const error = withStack(
      'Client.query (/app/node_modules/pg/lib/client.js:5:6)',
      'async Ledger.book (file:///app/dist/my ledger.js:10:5)',
      '/app/dist/pay.js:7:8',
      'Array.map (<anonymous>)',
      'process.processTicks (node:internal/process/task_queues:95:5)',
      'async /shared/util.js:1:2',
    );
    expect(ownFramesOf(error, '/app')).toBe(
      'at async Ledger.book (dist/my ledger.js:10:5)\nat dist/pay.js:7:8\nat async ../shared/util.js:1:2',
    );
    expect(ownFramesOf(withStack('pay (node:net:1:2)'), '/app')).toBe('');
  });

  it('OP-12 ownFramesOf() finds frames below many frames of packages, and returns at most 10 whole frames and 1,000 characters', () => {
    const packages = Array<string>(30).fill('f (/app/node_modules/x/y.js:1:1)');
    const short = withStack(...packages, ...Array<string>(20).fill('f (/app/a.js:1:1)'));
    expect(ownFramesOf(short, '/app').split('\n')).toEqual(
      Array<string>(10).fill('at f (a.js:1:1)'),
    );
    const long = withStack(...Array<string>(20).fill(`f (/app/${'a'.repeat(300)}.js:1:1)`));
    const lines = ownFramesOf(long, '/app').split('\n');
    expect([lines.length, lines.join('\n').length <= 1000]).toEqual([3, true]);
    expect(lines.every((line) => line.endsWith('.js:1:1)'))).toBe(true);
  });

  it('ownFramesOf() returns an empty text for a value that is not an error', () => {
    for (const thrown of [undefined, 'text', revoked(), hostile])
      expect(ownFramesOf(thrown)).toBe('');
  });
});

describe('framesOf', () => {
  it('framesOf() returns the stack frames of an error without its message', () => {
    const error = new Error('secret\n    at a secret place');
    const frames = framesOf(error);
    expect(frames).toMatch(/^\n {4}at .*payments-error\.spec\.ts/);
    expect(frames).not.toContain('secret');
    expect(frames.split('\n').length - 1).toBeLessThanOrEqual(10);
  });

  it('framesOf() returns an empty text for a value that is not an error', () => {
    const odd = Object.assign(new Error('x'), { stack: 7 });
    for (const thrown of [undefined, 'text', { stack: '    at x' }, odd, revoked(), hostile]) {
      expect(framesOf(thrown)).toBe('');
    }
  });

  it('framesOf() returns at most ten frames', () => {
    const deep = Object.assign(new Error('x'), {
      stack: `Error: x${'\n    at f (file.js:1:1)'.repeat(50)}`,
    });
    expect(framesOf(deep).match(/at f/g)).toHaveLength(10);
  });
});

describe('isUnrecoverable', () => {
  it('isUnrecoverable() is true for UnrecoverableError and data_invalid, and false for any other value', () => {
    expect(isUnrecoverable(new UnrecoverableError('x'))).toBe(true);
    expect(isUnrecoverable(new PaymentsError('data_invalid', 'x'))).toBe(true);
    expect(isUnrecoverable(new PaymentsError('timeout', 'x'))).toBe(false);
    expect(isUnrecoverable({ code: 'unrecoverable' })).toBe(false);
    expect(isUnrecoverable(revoked())).toBe(false);
    expect(isUnrecoverable(undefined)).toBe(false);
  });
});
