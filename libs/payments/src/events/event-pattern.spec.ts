import { describe, expect, it } from '@jest/globals';
import { assertPattern, matchesPattern, similarType } from './event-pattern.js';

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
  ])('matches the pattern %j with the type %j: %j', (pattern, eventType, covered) => {
    expect(matchesPattern(pattern, eventType)).toBe(covered);
  });
});

describe('assertPattern', () => {
  it.each(['a', 'a.b', 'a.*', 'a.b.*', '*', 'constructor', 'ä', 'a b'])('takes %j', (pattern) => {
    expect(() => assertPattern(pattern)).not.toThrow();
  });

  it.each(['', '.*', '**', 'a*', '*.a', 'a.*.b', 'a.**', '*.*'])('refuses %j', (pattern) => {
    expect(() => assertPattern(pattern)).toThrow(TypeError);
    expect(() => assertPattern(pattern)).toThrow(`"${pattern}" is none of them`);
  });

  it.each([undefined, null, 1, {}, Symbol('s'), Object.create(null)])(
    'refuses what is no text',
    (pattern) => {
      expect(() => assertPattern(pattern)).toThrow(/a \w+ is none of them/);
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
  ])('WH-29 takes %s for a misspelling of %s', (eventType, expected) => {
    expect(similarType(eventType, types)).toBe(expected);
  });

  it('WH-29 prefers the type with the fewest edits', () => {
    expect(similarType('transaction.b', ['transaction.abc', 'transaction.ab'])).toBe(
      'transaction.ab',
    );
    expect(similarType('constructor', [])).toBeUndefined();
  });
});
