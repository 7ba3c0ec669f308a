/** An item of a {@link PriorityQueue}. It is in at most one queue, which keeps these fields up to date. */
export interface Queued<T extends Queued<T>> {
  /** The queue that it is in. */
  queue: PriorityQueue<T> | null;
  /** Its index there. */
  position: number;
}

/** A binary heap. Each item knows its position, so that any item can be deleted without a search. */
export class PriorityQueue<T extends Queued<T>> {
  readonly #items: T[] = [];

  /** @param before whether the first item comes before the second. It must not change while both are queued. */
  constructor(private readonly before: (a: T, b: T) => boolean) {}

  get size(): number {
    return this.#items.length;
  }

  /** The item that comes before all others. */
  get first(): T | undefined {
    return this.#items[0];
  }

  add(item: T): void {
    item.queue = this;
    this.#items.push(item);
    this.#up(item, this.#items.length - 1);
  }

  /** Deletes an item of this queue. */
  delete(item: T): void {
    const last = this.#items.pop()!;
    if (last !== item) this.#down(last, this.#up(last, item.position));
    item.queue = null;
  }

  /** Moves the item from `index` towards the first one; returns where it ends. */
  #up(item: T, index: number): number {
    let at = index;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!this.before(item, this.#items[parent]!)) break;
      this.#put(this.#items[parent]!, at);
      at = parent;
    }
    this.#put(item, at);
    return at;
  }

  #down(item: T, index: number): void {
    let at = index;
    for (let child = 2 * at + 1; child < this.#items.length; child = 2 * at + 1) {
      const right = this.#items[child + 1];
      if (right !== undefined && this.before(right, this.#items[child]!)) child += 1;
      if (!this.before(this.#items[child]!, item)) break;
      this.#put(this.#items[child]!, at);
      at = child;
    }
    this.#put(item, at);
  }

  #put(item: T, index: number): void {
    this.#items[index] = item;
    item.position = index;
  }
}
