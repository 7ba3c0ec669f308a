import { describe, expect, it } from '@jest/globals';
import { seededRandom } from '../../../../../test/store-contract/contract-fixtures.js';
import { PriorityQueue } from './memory-events.js';
import type { Queued } from './memory-events.js';

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
  it.each([1, 10, 100_000])('a priority queue returns its items in order (%d ranks)', (ranks) => {
    const [queue, items] = queueOf(500, ranks);
    expect(seqs(drained(queue))).toEqual(seqs(inOrder(items)));
    expect(queue.first).toBe(undefined);
  });

  it('a priority queue keeps its order after items in the middle of the queue were deleted', () => {
    const [queue, items] = queueOf(500, 1000);
    const gone = items.filter(({ seq }) => seq % 3 === 0);
    for (const item of gone) queue.delete(item);
    const kept = items.filter((item) => !gone.includes(item));
    expect(items.filter((item) => item.queue === queue)).toHaveLength(kept.length);
    expect(seqs(drained(queue))).toEqual(seqs(inOrder(kept)));
  });
});
