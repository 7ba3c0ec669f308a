/** An item of a {@link LinkedList}. It is in at most one list, which keeps these fields up to date. */
export interface Linked<T> {
  next: T | null;
  previous: T | null;
}

/** A first-in, first-out queue from which any item can be deleted. */
export class LinkedList<T extends Linked<T>> {
  #first: T | null = null;
  #last: T | null = null;

  get first(): T | null {
    return this.#first;
  }

  add(item: T): void {
    item.previous = this.#last;
    if (this.#last === null) this.#first = item;
    else this.#last.next = item;
    this.#last = item;
  }

  /** Deletes an item of this list. */
  delete(item: T): void {
    const { next, previous } = item;
    if (previous === null) this.#first = next;
    else previous.next = next;
    if (next === null) this.#last = previous;
    else next.previous = previous;
    item.next = null;
    item.previous = null;
  }
}
