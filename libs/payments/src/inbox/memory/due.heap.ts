import type { DeliveryRow } from './memory.rows.js';

/**
 * Deliveries by when they are due, and of those due at once the oldest first: a binary heap. A row stands in one
 * heap at a time and knows where, so that one in the middle is found.
 */
export class DueHeap {
  readonly #rows: DeliveryRow[] = [];

  /** The one that is due first, left in place. */
  get first(): DeliveryRow | undefined {
    return this.#rows[0];
  }

  /** All of them, in no order. */
  [Symbol.iterator](): IterableIterator<DeliveryRow> {
    return this.#rows.values();
  }

  push(row: DeliveryRow): void {
    row.heap = this;
    this.#put(row, this.#rows.length);
    this.#rise(this.#rows.length - 1);
  }

  /** Takes the row out; nothing happens where it is not in. */
  remove(row: DeliveryRow): void {
    if (row.heap !== this) return;
    row.heap = null;
    const last = this.#rows.pop()!;
    if (last === row) return;
    this.#put(last, row.place);
    this.#rise(last.place);
    this.#sink(last.place);
  }

  #rise(from: number): void {
    let place = from;
    while (place > 0) {
      const parent = (place - 1) >> 1;
      if (!isBefore(this.#rows[place]!, this.#rows[parent]!)) return;
      this.#swap(place, parent);
      place = parent;
    }
  }

  #sink(from: number): void {
    let place = from;
    for (;;) {
      let first = place;
      for (const child of [2 * place + 1, 2 * place + 2]) {
        const row = this.#rows[child];
        if (row !== undefined && isBefore(row, this.#rows[first]!)) first = child;
      }
      if (first === place) return;
      this.#swap(place, first);
      place = first;
    }
  }

  #swap(a: number, b: number): void {
    const row = this.#rows[a]!;
    this.#put(this.#rows[b]!, a);
    this.#put(row, b);
  }

  #put(row: DeliveryRow, place: number): void {
    this.#rows[place] = row;
    row.place = place;
  }
}

function isBefore(a: DeliveryRow, b: DeliveryRow): boolean {
  return a.dueAt < b.dueAt || (a.dueAt === b.dueAt && a.order < b.order);
}
