/** Where an item stands in a {@link WaitingLine}; whoever joins keeps it, to leave with. */
export interface Place<T> {
  readonly item: T;
  before: Place<T> | null;
  after: Place<T> | null;
}

/**
 * Items in the order they joined, any of which may leave. A `Set` is that too, but to find its first item it
 * passes the gaps of all that left before it, and of a line that moves on there are always many.
 */
export class WaitingLine<T> {
  #first: Place<T> | null = null;
  #last: Place<T> | null = null;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** The one that joined before all others. */
  get first(): T | undefined {
    return this.#first?.item;
  }

  /** Puts the item at the end. */
  join(item: T): Place<T> {
    const place: Place<T> = { item, before: this.#last, after: null };
    if (this.#last === null) this.#first = place;
    else this.#last.after = place;
    this.#last = place;
    this.#size += 1;
    return place;
  }

  /** Takes out who stands at the place: once. */
  leave({ before, after }: Place<T>): void {
    if (before === null) this.#first = after;
    else before.after = after;
    if (after === null) this.#last = before;
    else after.before = before;
    this.#size -= 1;
  }
}
