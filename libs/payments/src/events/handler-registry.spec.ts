import { describe, expect, it } from '@jest/globals';
import { PaymentsError } from '../errors/payments-error.js';
import {
  assertPattern,
  defaultName,
  HandlerRegistry,
  matchesPattern,
  similarType,
} from './handler-registry.js';

function registry(...handlers: [name: string, ...patterns: string[]][]): HandlerRegistry {
  const result = new HandlerRegistry();
  for (const [name, ...patterns] of handlers) {
    const source = `Class.${name} (App)`;
    result.add({ name, source, patterns, options: {}, invoke: async () => {} });
  }
  return result;
}

describe('HandlerRegistry', () => {
  it('HandlerRegistry lists the handlers in the order in which they were added', () => {
    expect(registry(['c', 'x'], ['a', '*', 'x'], ['b', 'y']).names()).toEqual(['c', 'a', 'b']);
  });

  it('HandlerRegistry finds no handler by a name that every JavaScript object inherits, such as constructor', () => {
    const handlers = registry(['a', 'x']);
    for (const name of ['constructor', '__proto__', 'toString']) {
      expect(handlers.get(name)).toBeUndefined();
    }
    expect(registry(['__proto__', 'x']).get('__proto__')?.patterns).toEqual(['x']);
  });

  it('IN-37 HandlerRegistry rejects two handlers with the same name, and names both and the fix', () => {
    const both = (): HandlerRegistry => registry(['a', 'x'], ['a', 'y']);
    expect(both).toThrow(PaymentsError);
    expect(both).toThrow(
      /Class\.a \(App\) and Class\.a \(App\).*@OnPaymentEvent\(…, \{ name: '…' \}\)/,
    );
  });

  it.each(['', 'n'.repeat(201), 'a\nb', 'a\0'])(
    'HandlerRegistry rejects the handler name %j',
    (name) => {
      expect(() => registry([name, 'x'])).toThrow(/1 to 200 characters/);
    },
  );

  it('HandlerRegistry accepts a handler name of 200 non-ASCII characters', () => {
    expect(registry(['ü'.repeat(200), 'x']).names()).toHaveLength(1);
  });

  it('IN-37 HandlerRegistry builds the default name from the sorted event types and the method', () => {
    expect(defaultName(['transaction.completed'], 'markPaid')).toBe(
      'transaction.completed#markPaid',
    );
    expect(defaultName(['b.*', 'a', '*'], 'handle')).toBe('*|a|b.*#handle');
  });

  it('EX-07 HandlerRegistry rejects a name that is reserved for the module', () => {
    expect(() => registry(['@payments/poll', 'x'])).toThrow(/names that begin with "@payments\/"/);
    expect(defaultName(['@payments/overdue', 'a'], 'remind')).toBe('a|overdue#remind');
  });

  it('IN-37 HandlerRegistry rejects a default name over 200 characters, and asks for a name', () => {
    const types = Array.from({ length: 20 }, (_, index) => `transaction.kind-${index}`);
    expect(() => registry([defaultName(types, 'handle'), ...types])).toThrow(
      /Class\..*1 to 200 characters.*default name is made of the event types.*\{ name: '…' \}/,
    );
  });
});

describe('matchesPattern', () => {
  it.each([
    ['*', 'anything', true],
    ['*', '', true],
    ['a', 'a', true],
    ['a', 'A', false],
    ['a', 'a.b', false],
    ['a.*', 'a.b', true],
    ['a.*', 'a.b.c', true],
    ['a.*', 'a.', true],
    ['a.*', 'a', false],
    ['a.*', 'ab.c', false],
    ['a.b.*', 'a.b.c', true],
    ['a.b.*', 'a.c', false],
    ['a+b', 'aab', false],
    ['__proto__', '__proto__', true],
    ['*', '@payments/overdue', false],
    ['@payments/overdue', '@payments/overdue', true],
  ])('matchesPattern(%j, %j) returns %j', (pattern, eventType, covered) => {
    expect(matchesPattern(pattern, eventType)).toBe(covered);
  });
});

describe('assertPattern', () => {
  it.each(['@payments/overdue', '@payments/*', '@payments/x.*'])(
    'EX-07 assertPattern() rejects the reserved type %j',
    (pattern) => {
      expect(() => assertPattern(pattern)).toThrow(TypeError);
    },
  );

  it.each(['a', 'a.b', 'a.*', 'a.b.*', '*', 'constructor', 'ä', 'a b'])(
    'assertPattern() accepts the pattern %j',
    (pattern) => {
      expect(() => assertPattern(pattern)).not.toThrow();
    },
  );

  it.each(['', '.*', '**', 'a*', '*.a', 'a.*.b', 'a.**', '*.*'])(
    'assertPattern() rejects the pattern %j',
    (pattern) => {
      expect(() => assertPattern(pattern)).toThrow(TypeError);
      expect(() => assertPattern(pattern)).toThrow(`not "${pattern}"`);
    },
  );

  it.each([undefined, null, 1, {}, Symbol('s'), Object.create(null)])(
    'assertPattern() rejects a pattern that is not a string',
    (pattern) => {
      expect(() => assertPattern(pattern)).toThrow(/not a value of type \w+/);
    },
  );
});

describe('similarType', () => {
  const types = ['transaction.completed', 'transaction.reversed', 'payout.*', '*', 'ab'];

  it.each([
    ['transaction.complete', 'transaction.completed'],
    ['transaction.completd', 'transaction.completed'],
    ['transactoin.completed', 'transaction.completed'],
    ['transaction.reversde', 'transaction.reversed'],
    ['Transaction.Completed', 'transaction.completed'],
    ['transaction_compelted', 'transaction.completed'],
    ['abc', 'ab'],
    ['transaction.compl', undefined],
    ['Transaction.Complete', undefined],
    ['payout.', undefined],
    ['refund.settled', undefined],
    ['x'.repeat(255), undefined],
  ])('WH-29 similarType() recognises %s as a misspelling of %s', (eventType, expected) => {
    expect(similarType(eventType, types)).toBe(expected);
  });

  it('WH-29 similarType() suggests the handled type with the fewest edits', () => {
    expect(similarType('transaction.b', ['transaction.abc', 'transaction.ab'])).toBe(
      'transaction.ab',
    );
    expect(similarType('ab', [...types, 'ab', 'x'.repeat(255)])).toBe('ab');
    expect(similarType('constructor', [])).toBeUndefined();
  });
});
