import { describe, expect, it } from '@jest/globals';
import { WaitingLine } from './waiting.line.js';

function lineOf(...items: string[]): WaitingLine<string> {
  const line = new WaitingLine<string>();
  for (const item of items) line.join(item);
  return line;
}

function emptied(line: WaitingLine<string>): string[] {
  const items: string[] = [];
  for (let { first } = line; first !== undefined; { first } = line) {
    items.push(first);
    line.leave(first);
  }
  return items;
}

describe('WaitingLine', () => {
  it('keeps the order in which its items joined, whoever leaves', () => {
    for (const [leaving, left] of [
      ['a', 'bcd'],
      ['b', 'acd'],
      ['d', 'abc'],
    ] as const) {
      const line = lineOf('a', 'b', 'c', 'd');
      expect(line.leave(leaving)).toBe(true);
      expect(line.size).toBe(3);
      expect(line.has(leaving)).toBe(false);
      expect(emptied(line).join('')).toBe(left);
    }
  });

  it('puts who comes back at the end, and lets nobody join twice', () => {
    const line = lineOf('a', 'b', 'a');
    line.leave('a');
    line.join('a');
    expect(emptied(line)).toEqual(['b', 'a']);
  });

  it('goes on after it was empty', () => {
    const line = lineOf('a');
    expect(line.leave('a')).toBe(true);
    expect(line.leave('a')).toBe(false);
    expect(line.first).toBeUndefined();
    line.join('b');
    line.join('c');
    expect(emptied(line)).toEqual(['b', 'c']);
  });
});
