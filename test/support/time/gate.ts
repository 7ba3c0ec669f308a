/** A door a handler waits at until the test opens it, or slams it shut. */
export class Gate {
  /** How many came to it. */
  entered = 0;
  /** How many are waiting at it now, and how many at the most were at one time. */
  inside = 0;
  most = 0;
  readonly #door = Promise.withResolvers<void>();
  readonly #arrival = Promise.withResolvers<void>();

  /** Resolves when the first one has come. */
  get arrival(): Promise<void> {
    return this.#arrival.promise;
  }

  /** Waits here: what a handler calls. */
  async pass(): Promise<void> {
    this.entered += 1;
    this.inside += 1;
    this.most = Math.max(this.most, this.inside);
    this.#arrival.resolve();
    try {
      await this.#door.promise;
    } finally {
      this.inside -= 1;
    }
  }

  open(): void {
    this.#door.resolve();
  }

  slam(reason: unknown): void {
    // Nobody may be waiting.
    this.#door.promise.catch(() => {});
    this.#door.reject(reason);
  }
}
