import type { DeliveryState, PaymentInbox, SelectionResult, StoredEvent } from 'nestjs-payments';

interface EventId {
  readonly company: string;
  readonly id: string;
}

interface Group {
  readonly company: string;
  readonly ids: readonly string[];
}

/**
 * Events that an operator selected one by one. An action applies to all deliveries of these events that the action can
 * change, not only to dead deliveries. One call of the inbox changes deliveries in one state, so the deliveries are
 * grouped by state.
 */
export class BulkSelection {
  readonly #changed = new Set<string>();
  #deliveries = 0;

  private constructor(
    private readonly events: readonly StoredEvent[],
    private readonly handler: string | undefined,
  ) {}

  static async find(
    inbox: PaymentInbox,
    selected: readonly EventId[],
    handler: string | undefined,
  ): Promise<BulkSelection> {
    const events: StoredEvent[] = [];
    for (const { company, ids } of groupByCompany(selected)) {
      events.push(...(await inbox.list({ company, ids, limit: 1000 })).events);
    }
    return new BulkSelection(events, handler);
  }

  /**
   * Calls `act` for the deliveries that were in `state` when they were read, one handler at a time. The current state
   * of a delivery is not used, because an earlier call may have changed it, and `act` must not run twice for a
   * delivery.
   */
  async inState(
    state: DeliveryState,
    act: (query: Group & { state: DeliveryState; handler: string }) => Promise<SelectionResult>,
  ): Promise<void> {
    for (const [handler, events] of this.#byHandler(state)) {
      await this.#each(events, (group) => act({ ...group, state, handler }));
    }
  }

  /**
   * Calls `act` for the events that have no delivery, or no delivery to the given handler. Selects events by the states
   * `unhandled` and `stale`. These states exclude events whose data is deleted (tombstones), which have no delivery
   * either.
   */
  async withoutDelivery(
    act: (query: Group & { state?: 'unhandled' | 'stale' }) => Promise<SelectionResult>,
  ): Promise<void> {
    const { events, handler } = this;
    for (const state of ['unhandled', 'stale'] as const) {
      const undelivered = events.filter(
        ({ deliveries, stale }) => deliveries.length === 0 && stale === (state === 'stale'),
      );
      await this.#each(undelivered, (group) => act({ ...group, state }));
    }
    if (handler === undefined) return;
    const others = events.filter(
      ({ deliveries }) =>
        deliveries.length > 0 && deliveries.every((one) => one.handler !== handler),
    );
    await this.#each(others, act);
  }

  get result(): SelectionResult {
    return { events: this.#changed.size, deliveries: this.#deliveries };
  }

  #byHandler(state: DeliveryState): Map<string, StoredEvent[]> {
    const found = new Map<string, StoredEvent[]>();
    for (const event of this.events) {
      for (const { handler, state: current } of event.deliveries) {
        if (current !== state || (this.handler ?? handler) !== handler) continue;
        found.set(handler, [...(found.get(handler) ?? []), event]);
      }
    }
    return found;
  }

  async #each(
    events: readonly StoredEvent[],
    act: (group: Group) => Promise<SelectionResult>,
  ): Promise<void> {
    for (const group of groupByCompany(events)) {
      const changed = await act(group);
      this.#deliveries += changed.deliveries;
      // The result contains only the number of changed events, so this code assumes that the first events were changed.
      for (const id of group.ids.slice(0, changed.events))
        this.#changed.add(`${group.company}/${id}`);
    }
  }
}

function groupByCompany(events: readonly EventId[]): Group[] {
  const groups = Map.groupBy(events, ({ company }) => company);
  return [...groups].map(([company, group]) => ({
    company,
    ids: [...new Set(group.map(({ id }) => id))],
  }));
}
