import { describe, expect, it } from '@jest/globals';
import { assertPattern, matchesPattern } from './event-pattern.js';

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
  ])('tells of %j and %j: %j', (pattern, eventType, covered) => {
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
