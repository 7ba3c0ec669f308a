/** A priority queue (binary heap) of distinct items, from which any item can be removed. */
export class Heap<T extends object> {
  readonly #items: T[] = [];
  /** Index of each item in {@link #items}. */
  readonly #index = new Map<T, number>();

  /** @param before whether the first item comes before the second. It must not change while both are in the heap. */
  constructor(private readonly before: (a: T, b: T) => boolean) {}

  get size(): number {
    return this.#items.length;
  }

  /** The item that comes before all others. */
  get first(): T | undefined {
    return this.#items[0];
  }

  has(item: T): boolean {
    return this.#index.has(item);
  }

  add(item: T): void {
    this.#items.push(item);
    this.#up(item, this.#items.length - 1);
  }

  /** Removes the item, if it is in the heap. */
  delete(item: T): void {
    const index = this.#index.get(item);
    if (index === undefined) return;
    this.#index.delete(item);
    const last = this.#items.pop()!;
    if (last !== item) this.#down(last, this.#up(last, index));
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
    for (;;) {
      let child = 2 * at + 1;
      if (child >= this.#items.length) break;
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
    this.#index.set(item, index);
  }
}
