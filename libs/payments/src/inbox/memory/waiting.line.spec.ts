import { describe, expect, it } from '@jest/globals';
import { WaitingLine } from './waiting.line.js';

/** A line of these items, and their places. */
function lineOf(...items: string[]) {
  const line = new WaitingLine<string>();
  const places = new Map(items.map((item) => [item, line.join(item)]));
  const leave = (item: string): void => line.leave(places.get(item)!);
  const emptied = (): string => {
    let left = '';
    for (let { first } = line; first !== undefined; { first } = line) {
      left += first;
      leave(first);
    }
    return left;
  };
  return { line, places, leave, emptied };
}

describe('WaitingLine', () => {
  it('keeps the order in which its items joined, whoever leaves', () => {
    for (const [leaving, left] of [
      ['a', 'bcd'],
      ['b', 'acd'],
      ['d', 'abc'],
    ] as const) {
      const { line, leave, emptied } = lineOf('a', 'b', 'c', 'd');
      leave(leaving);
      expect(line.size).toBe(3);
      expect(emptied()).toBe(left);
      expect(line.size).toBe(0);
    }
  });

  it('puts who comes back at the end', () => {
    const { line, places, leave, emptied } = lineOf('a', 'b');
    leave('a');
    places.set('a', line.join('a'));
    expect(emptied()).toBe('ba');
  });

  it('goes on after it was empty', () => {
    const { line, places, leave, emptied } = lineOf('a');
    leave('a');
    expect(line.first).toBeUndefined();
    for (const item of ['b', 'c']) places.set(item, line.join(item));
    expect(emptied()).toBe('bc');
  });
});
