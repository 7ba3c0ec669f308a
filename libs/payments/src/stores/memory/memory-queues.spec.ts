import { describe, expect, it } from '@jest/globals';
import { seededRandom } from '../../../../../test/store-contract/contract-fixtures.js';
import { LinkedList, PriorityQueue } from './memory-queues.js';
import type { Linked, Queued } from './memory-queues.js';

interface Named extends Linked<Named> {
  readonly name: string;
}

function listOf(names: string): [LinkedList<Named>, Named[]] {
  const list = new LinkedList<Named>();
  const items = names.split('').map((name): Named => ({ name, next: null, previous: null }));
  for (const item of items) list.add(item);
  return [list, items];
}

function namesOf(list: LinkedList<Named>): string {
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
    expect(namesOf(list)).toBe('abcd');
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
      const other = new LinkedList<Named>();
      for (const item of items.filter(({ name }) => gone.includes(name))) {
        list.delete(item);
        other.add(item);
      }
      list.add({ name: 'e', next: null, previous: null });
      expect([namesOf(list), namesOf(other)]).toEqual([`${kept}e`, gone]);
    },
  );
});

interface Item extends Queued<Item> {
  readonly rank: number;
  readonly seq: number;
}

const before = (a: Item, b: Item) => a.rank < b.rank || (a.rank === b.rank && a.seq < b.seq);
const inOrder = (items: readonly Item[]) => items.toSorted((a, b) => (before(a, b) ? -1 : 1));
const seqs = (items: readonly Item[]) => items.map(({ seq }) => seq);

function queueOf(count: number, ranks: number): [PriorityQueue<Item>, Item[]] {
  const random = seededRandom(7);
  const queue = new PriorityQueue(before);
  const items = Array.from({ length: count }, (_, seq): Item => {
    const rank = Math.floor(random() * ranks);
    return { rank, seq, queue: null, position: 0 };
  });
  for (const item of items) queue.add(item);
  return [queue, items];
}

function drained(queue: PriorityQueue<Item>): Item[] {
  const items: Item[] = [];
  for (let { first } = queue; first !== undefined; { first } = queue) {
    items.push(first);
    queue.delete(first);
  }
  return items;
}

describe('PriorityQueue', () => {
  it.each([1, 10, 100_000])('a queue returns its items in order (%d ranks)', (ranks) => {
    const [queue, items] = queueOf(500, ranks);
    expect(queue.size).toBe(500);
    expect(seqs(drained(queue))).toEqual(seqs(inOrder(items)));
    expect(queue.size).toBe(0);
  });

  it('a queue keeps its order after items in its middle were deleted', () => {
    const [queue, items] = queueOf(500, 1000);
    const gone = items.filter(({ seq }) => seq % 3 === 0);
    for (const item of gone) queue.delete(item);
    const kept = items.filter((item) => !gone.includes(item));
    expect(items.filter((item) => item.queue === queue)).toHaveLength(kept.length);
    expect(seqs(drained(queue))).toEqual(seqs(inOrder(kept)));
  });
});
