interface Places {
  readonly limit: number;
  /** Reserved, asked for by a claim, or taken by a handler that runs. */
  used: number;
  /** Used ones, and those whose handler has ended but whose delivery is not settled yet. */
  held: number;
  /** Whether the last claim was full, so that more is due. */
  backlog: boolean;
  /** Whether something may have become due since the last claim was sent. */
  woken: boolean;
}

/**
 * How many runs of each handler this process may have at the same time (a bulkhead): each handler has its own places,
 * so one that is slow or hangs takes none from the others. It also remembers of which handlers something may be due.
 */
export class HandlerSlots {
  readonly #handlers = new Map<string, Places>();
  #closed = false;
  #held = 0;
  #onIdle: (() => void)[] = [];

  /** Adds a handler. What is due to it is not known yet. */
  add(handler: string, limit: number): void {
    this.#handlers.set(handler, { limit, used: 0, held: 0, backlog: true, woken: true });
  }

  /** Something may be due to these handlers, or to any. Returns whether this process has one of them. */
  wake(handlers: Iterable<string> = this.#handlers.keys()): boolean {
    let known = false;
    for (const handler of handlers) {
      const places = this.#handlers.get(handler);
      if (places === undefined) continue;
      places.woken = true;
      known = true;
    }
    return known;
  }

  /** Whether {@link ask} would return anything. */
  get wanting(): boolean {
    for (const places of this.#handlers.values()) if (this.#wanted(places) > 0) return true;
    return false;
  }

  /** Handlers to which nothing is known to be due. */
  get caughtUp(): string[] {
    return this.#names(({ backlog, woken }) => !backlog && !woken);
  }

  get names(): string[] {
    return [...this.#handlers.keys()];
  }

  /** Handlers with a free place. */
  get withRoom(): string[] {
    return this.#names((places) => this.#free(places) > 0);
  }

  /**
   * Takes a place of each of the handlers that has one and no known backlog. If something may be due that no claim has
   * looked for yet, a place is left to that claim.
   */
  reserve(handlers: readonly string[]): string[] {
    return handlers.filter((handler) => {
      const places = this.#handlers.get(handler);
      if (places === undefined || places.backlog) return false;
      if (this.#free(places) <= (places.woken ? 1 : 0)) return false;
      this.take(handler);
      return true;
    });
  }

  /** Takes the places that a claim is to fill, and returns how many of which handlers. */
  ask(): { handler: string; limit: number }[] {
    const wanted: { handler: string; limit: number }[] = [];
    for (const [handler, places] of this.#handlers) {
      const limit = this.#wanted(places);
      if (limit <= 0) continue;
      places.woken = false;
      this.take(handler, limit);
      wanted.push({ handler, limit });
    }
    return wanted;
  }

  /** Frees the places that a claim did not fill; the others are taken by the runs of what was claimed. */
  answered(
    wanted: readonly { readonly handler: string; readonly limit: number }[],
    claimed: readonly { readonly handler: string }[],
  ): void {
    for (const { handler, limit } of wanted) {
      const count = claimed.filter((delivery) => delivery.handler === handler).length;
      this.free(handler, limit - count);
      this.#handlers.get(handler)!.backlog = count >= limit;
    }
  }

  /** Frees the places of a claim that failed. */
  failed(wanted: readonly { readonly handler: string; readonly limit: number }[]): void {
    for (const { handler, limit } of wanted) {
      this.free(handler, limit);
      this.wake([handler]);
    }
  }

  /** Takes places, even if none is free. */
  take(handler: string, count = 1): void {
    const places = this.#handlers.get(handler)!;
    places.used += count;
    places.held += count;
    this.#held += count;
  }

  /** Frees places that were reserved or asked for and are not needed. */
  free(handler: string, count = 1): void {
    this.handled(handler, count);
    this.settled(handler, count);
  }

  /** The handler has ended, or its time is up: its place is free while its delivery is settled. */
  handled(handler: string, count = 1): void {
    this.#handlers.get(handler)!.used -= count;
  }

  /** The delivery is settled. */
  settled(handler: string, count = 1): void {
    this.#handlers.get(handler)!.held -= count;
    this.#held -= count;
    if (this.#held > 0 || this.#onIdle.length === 0) return;
    for (const resolve of this.#onIdle.splice(0)) resolve();
  }

  /** Has no free places until {@link open}. */
  close(): void {
    this.#closed = true;
  }

  open(): void {
    this.#closed = false;
  }

  /** Resolves when nothing runs, is being settled, reserved or claimed. */
  whenIdle(): Promise<void> {
    if (this.#held === 0) return Promise.resolve();
    return new Promise((resolve) => this.#onIdle.push(resolve));
  }

  get idle(): boolean {
    return this.#held === 0;
  }

  #free({ limit, used, held }: Places): number {
    if (this.#closed) return 0;
    // The leases held stay bounded if the store settles more slowly than handlers end.
    return Math.min(limit - used, 2 * limit - held);
  }

  /** All free places if more is due; otherwise half of them, so that new events find places meanwhile. */
  #wanted(places: Places): number {
    const free = this.#free(places);
    if (places.backlog) return free;
    return places.woken ? Math.ceil(free / 2) : 0;
  }

  #names(condition: (places: Places) => boolean): string[] {
    return [...this.#handlers].filter(([, places]) => condition(places)).map(([name]) => name);
  }
}
