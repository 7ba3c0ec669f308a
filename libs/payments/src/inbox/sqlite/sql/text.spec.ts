import { describe, expect, it } from '@jest/globals';
import { fromStored, laneOf, toReadable, toStored } from './text.js';

describe('text in SQLite', () => {
  it('is read as it was stored, whatever it contains', () => {
    for (const text of ['', 'tx-1', 'é漢😀', '"\\', '\0\n', '\ud800', '\ud801x', '\\u0000']) {
      expect(fromStored(toStored(text))).toBe(text);
      expect(toStored(text).isWellFormed()).toBe(true);
      expect(toStored(text)).not.toContain('\0');
    }
    expect(toStored('an-ordinary_id.7')).toBe('an-ordinary_id.7');
  });

  it('is stored as JSON escapes it', () => {
    for (const text of ['a"b', 'a\\b', 'a/b', 'a\tb', '\x7f', 'é', '\u2028', ' !#[]~']) {
      expect(toStored(text)).toBe(JSON.stringify(text).slice(1, -1));
    }
  });

  it('makes different, short lanes of different ordering keys', () => {
    const lanes = [
      laneOf('a', 'b'),
      laneOf('a', 'c'),
      laneOf('b', 'b'),
      laneOf('a', '\ud800'),
      laneOf('a', '\ud801'),
      laneOf('a', 'x'.repeat(100_000)),
      laneOf('a', `${'x'.repeat(100_000)}y`),
    ];
    expect(new Set(lanes).size).toBe(lanes.length);
    expect(Math.max(...lanes.map((lane) => lane!.length))).toBeLessThan(250);
    expect(laneOf('a', null)).toBeNull();
  });

  it('is well-formed if it is an error', () => {
    expect(toReadable('a\0b\ud800')).toBe('a\uFFFDb\uFFFD');
  });
});
