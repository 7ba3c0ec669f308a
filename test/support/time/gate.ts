/** Makes handlers wait until the test opens the gate, or makes them fail. */
export class Gate {
  /** How many handlers have called {@link pass}. */
  entered = 0;
  /** How many wait now, and the maximum so far. */
  inside = 0;
  most = 0;
  readonly #opened = Promise.withResolvers<void>();
  readonly #arrival = Promise.withResolvers<void>();

  /** Resolves when the first handler waits. */
  get arrival(): Promise<void> {
    return this.#arrival.promise;
  }

  /** Waits until the gate opens. A handler calls it. */
  async pass(): Promise<void> {
    this.entered += 1;
    this.inside += 1;
    this.most = Math.max(this.most, this.inside);
    this.#arrival.resolve();
    try {
      await this.#opened.promise;
    } finally {
      this.inside -= 1;
    }
  }

  open(): void {
    this.#opened.resolve();
  }

  /** Makes each handler that waits, now or later, throw `reason`. */
  fail(reason: unknown): void {
    // Without a waiting handler, the rejection would be unhandled.
    this.#opened.promise.catch(() => {});
    this.#opened.reject(reason);
  }
}
