import { describe, expect, it } from '@jest/globals';
import { seededRandom } from '../../testing/contract/contract-fixtures.js';
import { Heap } from './heap.js';

interface Item {
  readonly rank: number;
  readonly seq: number;
}

const before = (a: Item, b: Item) => a.rank < b.rank || (a.rank === b.rank && a.seq < b.seq);
const inOrder = (items: readonly Item[]) => items.toSorted((a, b) => (before(a, b) ? -1 : 1));

function heapOf(count: number, ranks: number): [Heap<Item>, Item[]] {
  const random = seededRandom(7);
  const items = Array.from({ length: count }, (_, seq) => ({
    rank: Math.floor(random() * ranks),
    seq,
  }));
  const heap = new Heap(before);
  for (const item of items) heap.add(item);
  return [heap, items];
}

function drained(heap: Heap<Item>): Item[] {
  const items: Item[] = [];
  for (let { first } = heap; first !== undefined; { first } = heap) {
    items.push(first);
    heap.delete(first);
  }
  return items;
}

describe('Heap', () => {
  it.each([1, 10, 100_000])('returns its items in order (%d ranks)', (ranks) => {
    const [heap, items] = heapOf(500, ranks);
    expect(heap.size).toBe(500);
    expect(drained(heap)).toEqual(inOrder(items));
    expect(heap.size).toBe(0);
  });

  it('deletes an item from the middle once, and keeps the others in order', () => {
    const [heap, items] = heapOf(500, 1000);
    const gone = items.filter(({ seq }) => seq % 3 === 0);
    for (const item of [...gone, ...gone]) heap.delete(item);
    expect(gone.some((item) => heap.has(item))).toBe(false);
    expect(drained(heap)).toEqual(inOrder(items.filter((item) => !gone.includes(item))));
  });
});
