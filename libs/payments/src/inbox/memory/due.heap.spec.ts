import { describe, expect, it } from '@jest/globals';
import { DueHeap } from './due.heap.js';
import type { DeliveryRow } from './memory.rows.js';

/** Numbers that look random and are the same each time. */
function* numbers(): Generator<number> {
  for (let n = 7; ; n = (n * 48_271) % 2_147_483_647) yield n;
}

function rows(count: number, spread: number): DeliveryRow[] {
  const random = numbers();
  return Array.from(
    { length: count },
    (_, order) => ({ order, dueAt: random.next().value % spread }) as DeliveryRow,
  );
}

function drained(heap: DueHeap): DeliveryRow[] {
  const order: DeliveryRow[] = [];
  for (let row = heap.first; row !== undefined; row = heap.first) {
    order.push(row);
    heap.remove(row);
  }
  return order;
}

const inOrder = (all: DeliveryRow[]) =>
  all.toSorted((a, b) => a.dueAt - b.dueAt || a.order - b.order);

describe('DueHeap', () => {
  it.each([1, 10, 100_000])(
    'gives rows by when they are due, then by age (spread %d)',
    (spread) => {
      const all = rows(500, spread);
      const heap = new DueHeap();
      for (const row of all) heap.push(row);
      expect(drained(heap)).toEqual(inOrder(all));
    },
  );

  it('takes a row out of the middle, and keeps the others in order', () => {
    const all = rows(500, 1000);
    const heap = new DueHeap();
    for (const row of all) heap.push(row);
    const gone = all.filter((_, index) => index % 3 === 0);
    for (const row of gone) heap.remove(row);
    for (const row of gone) heap.remove(row);
    expect(drained(heap)).toEqual(inOrder(all.filter((row) => !gone.includes(row))));
    expect(heap.first).toBeUndefined();
  });
});
