import { describe, expect, it } from '@jest/globals';
import { fromStored, orderingOf, toStored } from './sql-connection.js';

describe('texts in the databases', () => {
  const texts = [
    '',
    'plain',
    'é 😀 \u2028',
    '\0',
    'a\0\0b',
    '\ud800',
    '\udfff\ud800',
    '\ue000',
    '\ue0000000',
    String.raw`a\u0000 "b"`,
  ];

  it.each(texts)('fromStored returns the text that toStored was given: %j', (text) => {
    const stored = toStored(text);
    expect(stored.isWellFormed()).toBe(true);
    expect(stored).not.toContain('\0');
    expect(fromStored(stored)).toBe(text);
  });

  it('toStored does not change ordinary text, and returns different results for different texts', () => {
    expect(toStored('order 😀')).toBe('order 😀');
    expect(new Set(texts.map(toStored)).size).toBe(texts.length);
  });

  it('orderingOf returns a hash of 16 bytes that differs for each company and ordering key', () => {
    const hashes = [
      orderingOf('a', 'b'),
      orderingOf('a', 'c'),
      orderingOf('b', 'b'),
      orderingOf('a', toStored('\ud800')),
      orderingOf('a', toStored('\ud801')),
      orderingOf('a', 'x'.repeat(100_000)),
    ].map((bytes) => bytes!.toString('hex'));
    expect(new Set(hashes).size).toBe(hashes.length);
    expect(hashes.every(({ length }) => length === 32)).toBe(true);
    expect(orderingOf('a', null)).toBeNull();
  });
});
