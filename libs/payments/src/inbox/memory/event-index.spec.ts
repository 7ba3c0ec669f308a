import { describe, expect, it } from '@jest/globals';
import { LinkedList } from './event-index.js';
import type { Linked } from './event-index.js';

interface Item extends Linked<Item> {
  readonly name: string;
}

function listOf(names: string): [LinkedList<Item>, Item[]] {
  const list = new LinkedList<Item>();
  const items = names.split('').map((name): Item => ({ name, next: null, previous: null }));
  for (const item of items) list.add(item);
  return [list, items];
}

function drained(list: LinkedList<Item>): string {
  let names = '';
  for (let { first } = list; first !== null; { first } = list) {
    names += first.name;
    list.delete(first);
  }
  return names;
}

describe('LinkedList', () => {
  it('a list returns its items in the order in which they were added', () => {
    const [list] = listOf('abcd');
    expect(drained(list)).toBe('abcd');
    expect(list.first).toBe(null);
  });

  it.each([
    ['a', 'bcd'],
    ['b', 'acd'],
    ['d', 'abc'],
    ['bc', 'ad'],
    ['abcd', ''],
  ])(
    'LinkedList items %s of abcd can move to another list, and the rest, %s, keeps its order',
    (gone, kept) => {
      const [list, items] = listOf('abcd');
      const other = new LinkedList<Item>();
      for (const item of items.filter(({ name }) => gone.includes(name))) {
        list.delete(item);
        other.add(item);
      }
      list.add({ name: 'e', next: null, previous: null });
      expect([drained(list), drained(other)]).toEqual([`${kept}e`, gone]);
    },
  );
});
