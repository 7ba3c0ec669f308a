import { describe, expect, it } from '@jest/globals';
import { hashOf, orderingOf } from './stored-rows.js';

describe('text in SQLite', () => {
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
});
