import { describe, expect, it } from '@jest/globals';
import { fromStored, toStored } from './stored-text.js';

describe('a text in PostgreSQL', () => {
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
  ];

  it.each(texts)('comes back as it was: %j', (text) => {
    const stored = toStored(text);
    expect(stored.isWellFormed()).toBe(true);
    expect(stored).not.toContain('\0');
    expect(fromStored(stored)).toBe(text);
  });

  it('is stored as it is where that is possible, and never like another', () => {
    expect(toStored('order 😀')).toBe('order 😀');
    expect(new Set(texts.map(toStored)).size).toBe(texts.length);
  });
});
