import { describe, expect, it } from '@jest/globals';
import { fromStored, hashOf, orderingOf, toReadable, toStored } from './stored-rows.js';

describe('text in SQLite', () => {
  it('text in SQLite has every character after it was stored and read', () => {
    for (const text of ['', 'tx-1', 'é漢😀', '"\\', '\0\n', '\ud800', '\ud801x', '\\u0000']) {
      expect(fromStored(toStored(text))).toBe(text);
      expect(toStored(text).isWellFormed()).toBe(true);
      expect(toStored(text)).not.toContain('\0');
    }
    expect(toStored('an-ordinary_id.7')).toBe('an-ordinary_id.7');
  });

  it('text in SQLite is stored as JSON escapes it', () => {
    for (const text of ['a"b', 'a\\b', 'a/b', 'a\tb', '\x7f', 'é', '\u2028', ' !#[]~']) {
      expect(toStored(text)).toBe(JSON.stringify(text).slice(1, -1));
    }
  });

  it('text in SQLite has a hash of 16 bytes that differs for each company and ordering key', () => {
    const hashes = [
      orderingOf('a', 'b'),
      orderingOf('a', 'c'),
      orderingOf('b', 'b'),
      orderingOf('a', '\ud800'),
      orderingOf('a', '\ud801'),
      orderingOf('a', 'x'.repeat(100_000)),
      hashOf('a', 'b', 'c'),
      hashOf('a', 'b","c'),
    ].map((bytes) => Buffer.from(bytes!).toString('hex'));
    expect(new Set(hashes).size).toBe(hashes.length);
    expect(hashes.every(({ length }) => length === 32)).toBe(true);
    expect(orderingOf('a', null)).toBeNull();
  });

  it('text in SQLite is well-formed and without NULs if it is an error message', () => {
    expect(toReadable('a\0b\ud800')).toBe('a\uFFFDb\uFFFD');
  });
});
