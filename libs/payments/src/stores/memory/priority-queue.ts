/** An item of a {@link PriorityQueue}: the queue that it is in, if any, and its index there. The queue updates both. */
export interface Queued<T extends Queued<T>> {
  queue: PriorityQueue<T> | null;
  position: number;
}

/** A binary heap. Each item has its position, so the queue can delete any item without a search. */
export class PriorityQueue<T extends Queued<T>> {
  readonly #items: T[] = [];

  /** @param before whether the first item comes before the second. It must not change while both are queued. */
  constructor(private readonly before: (a: T, b: T) => boolean) {}

  get first(): T | undefined {
    return this.#items[0];
  }

  add(item: T): void {
    item.queue = this;
    this.#up(item, this.#items.push(item) - 1);
  }

  delete(item: T): void {
    const last = this.#items.pop()!;
    if (last !== item) this.#down(last, this.#up(last, item.position));
    item.queue = null;
  }

  /** Moves the item from the index towards the first one. Returns its final index. */
  #up(item: T, index: number): number {
    let at = index;
    for (let parent = (at - 1) >> 1; at > 0; parent = (at - 1) >> 1) {
      if (!this.before(item, this.#items[parent]!)) break;
      this.#put(this.#items[parent]!, at);
      at = parent;
    }
    return this.#put(item, at);
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

  #put(item: T, index: number): number {
    this.#items[index] = item;
    item.position = index;
    return index;
  }
}
