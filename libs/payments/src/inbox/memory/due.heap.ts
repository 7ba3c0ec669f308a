import type { DeliveryRow } from './memory.rows.js';

/** Deliveries by when they are due, and of those due at once the oldest first: a binary heap. */
export class DueHeap {
  readonly #rows: DeliveryRow[] = [];
  /** Where each row stands, so that one in the middle is found. */
  readonly #places = new Map<DeliveryRow, number>();

  /** The one that is due first, left in place. */
  get first(): DeliveryRow | undefined {
    return this.#rows[0];
  }

  push(row: DeliveryRow): void {
    this.#put(row, this.#rows.length);
    this.#rise(this.#rows.length - 1);
  }

  /** Takes the row out; nothing happens where it is not in. */
  remove(row: DeliveryRow): void {
    const place = this.#places.get(row);
    if (place === undefined) return;
    const last = this.#rows.pop()!;
    this.#places.delete(row);
    if (last === row) return;
    this.#put(last, place);
    this.#rise(place);
    this.#sink(this.#places.get(last)!);
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
    this.#places.set(row, place);
  }
}

function isBefore(a: DeliveryRow, b: DeliveryRow): boolean {
  return a.dueAt < b.dueAt || (a.dueAt === b.dueAt && a.order < b.order);
}
