interface Slots {
  readonly limit: number;
  /** Number of slots that are reserved, taken for a claim, or taken by a running handler. */
  used: number;
  /** Number of used slots, plus the number of deliveries whose handler has ended but that are not settled yet. */
  leased: number;
  /** Whether the last claim filled all of its slots, so that more deliveries may be due. */
  backlog: boolean;
  /** Whether a delivery may have become due since the last claim was sent. */
  woken: boolean;
}

interface WantedDeliveries {
  readonly handler: string;
  readonly limit: number;
}

/**
 * Limits how many attempts of each handler run in this process at the same time (a bulkhead). Each handler has its own
 * slots, so a handler that is slow or hangs takes no slot of another handler. Also records which handlers may have due
 * deliveries.
 */
export class HandlerSlots {
  readonly #handlers = new Map<string, Slots>();
  /** Sum of `leased` of all handlers. */
  #leased = 0;
  #onIdle: (() => void)[] = [];

  add(handler: string, limit: number): void {
    this.#handlers.set(handler, { limit, used: 0, leased: 0, backlog: true, woken: true });
  }

  /** Records that deliveries to these handlers may be due. Returns whether this process runs one of these handlers. */
  wake(handlers: Iterable<string> = this.#handlers.keys()): boolean {
    let known = false;
    for (const handler of handlers) {
      const slots = this.#handlers.get(handler);
      if (slots === undefined) continue;
      slots.woken = true;
      known = true;
    }
    return known;
  }

  /** Whether {@link requestForClaim} would request any deliveries. */
  get wanting(): boolean {
    for (const slots of this.#handlers.values()) if (this.#wanted(slots) > 0) return true;
    return false;
  }

  /** Names of the handlers that have no due deliveries, as far as is known. */
  get caughtUp(): string[] {
    return this.names.filter((name) => {
      const { backlog, woken } = this.#handlers.get(name)!;
      return !backlog && !woken;
    });
  }

  get names(): string[] {
    return [...this.#handlers.keys()];
  }

  /**
   * Takes one slot of each of these handlers, unless the handler has no free slot or a known backlog. If a delivery of
   * the handler may have become due since the last claim, leaves one slot for the next claim. Returns the handlers
   * whose slot was taken.
   */
  reserve(handlers: readonly string[]): string[] {
    return handlers.filter((handler) => {
      const slots = this.#handlers.get(handler);
      if (slots === undefined || slots.backlog) return false;
      if (this.#free(slots) <= (slots.woken ? 1 : 0)) return false;
      this.#take(slots, 1);
      return true;
    });
  }

  /** Takes the slots for a claim, and returns how many deliveries to claim for each handler. */
  requestForClaim(): WantedDeliveries[] {
    const wanted: WantedDeliveries[] = [];
    for (const [handler, slots] of this.#handlers) {
      const limit = this.#wanted(slots);
      if (limit <= 0) continue;
      slots.woken = false;
      this.#take(slots, limit);
      wanted.push({ handler, limit });
    }
    return wanted;
  }

  /** Frees the slots that a claim did not fill. The attempts of the claimed deliveries keep the other slots. */
  claimed(
    wanted: readonly WantedDeliveries[],
    claimed: readonly { readonly handler: string }[],
  ): void {
    for (const { handler, limit } of wanted) {
      const count = claimed.filter((delivery) => delivery.handler === handler).length;
      this.free(handler, limit - count);
      this.#handlers.get(handler)!.backlog = count >= limit;
    }
  }

  claimFailed(wanted: readonly WantedDeliveries[]): void {
    for (const { handler, limit } of wanted) {
      this.free(handler, limit);
      this.wake([handler]);
    }
  }

  /** Frees slots that were taken and that no attempt needs. */
  free(handler: string, count = 1): void {
    this.handled(handler, count);
    this.settled(handler, count);
  }

  /**
   * Frees the slot of a handler that has ended or exceeded its time limit. Call {@link settled} when the delivery is
   * settled.
   */
  handled(handler: string, count = 1): void {
    this.#handlers.get(handler)!.used -= count;
  }

  settled(handler: string, count = 1): void {
    this.#handlers.get(handler)!.leased -= count;
    this.#leased -= count;
    if (this.#leased > 0 || this.#onIdle.length === 0) return;
    for (const resolve of this.#onIdle.splice(0)) resolve();
  }

  whenIdle(): Promise<void> {
    if (this.idle) return Promise.resolve();
    return new Promise((resolve) => this.#onIdle.push(resolve));
  }

  get idle(): boolean {
    return this.#leased === 0;
  }

  #take(slots: Slots, count: number): void {
    slots.used += count;
    slots.leased += count;
    this.#leased += count;
  }

  #free({ limit, used, leased }: Slots): number {
    // The second term bounds the number of leases if the store settles more slowly than handlers end.
    return Math.min(limit - used, 2 * limit - leased);
  }

  /**
   * With a backlog, a claim takes all free slots; otherwise half, so that new events find free slots during the claim.
   */
  #wanted(slots: Slots): number {
    const free = this.#free(slots);
    if (slots.backlog) return free;
    return slots.woken ? Math.ceil(free / 2) : 0;
  }
}
