interface Place<T> {
  readonly item: T;
  before: Place<T> | null;
  after: Place<T> | null;
}

/**
 * Items in the order they joined, any of which may leave. A `Set` is that too, but to find its first item it
 * passes the gaps of all that left before it, and of a line that moves on there are always many.
 */
export class WaitingLine<T> {
  readonly #places = new Map<T, Place<T>>();
  #first: Place<T> | null = null;
  #last: Place<T> | null = null;

  get size(): number {
    return this.#places.size;
  }

  /** The one that joined before all others. */
  get first(): T | undefined {
    return this.#first?.item;
  }

  has(item: T): boolean {
    return this.#places.has(item);
  }

  /** Puts the item at the end; nothing happens where it is in the line. */
  join(item: T): void {
    if (this.has(item)) return;
    const place: Place<T> = { item, before: this.#last, after: null };
    if (this.#last === null) this.#first = place;
    else this.#last.after = place;
    this.#last = place;
    this.#places.set(item, place);
  }

  /** Takes the item out; `false` where it was not in. */
  leave(item: T): boolean {
    const place = this.#places.get(item);
    if (place === undefined) return false;
    const { before, after } = place;
    if (before === null) this.#first = after;
    else before.after = after;
    if (after === null) this.#last = before;
    else after.before = before;
    return this.#places.delete(item);
  }
}
