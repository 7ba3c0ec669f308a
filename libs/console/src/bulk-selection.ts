import type { DeliveryState, PaymentInbox, SelectionResult, StoredEvent } from 'nestjs-payments';

/** Identifies an event. */
interface EventId {
  readonly company: string;
  readonly id: string;
}

/** Events of one company. */
interface Group {
  readonly company: string;
  readonly ids: readonly string[];
}

/**
 * Events that an operator selected one by one. An action applies to each delivery that it can change, not only to dead
 * ones. The inbox acts on one state at a time, so the deliveries are grouped by state first.
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
   * Acts on the deliveries that were in this state when they were read, one handler at a time: after an action, a
   * delivery may be in another state, and must not be acted on again.
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
   * Acts on events that have no delivery, or none to the given handler. Events without any are requested as
   * `unhandled` or `stale`, which excludes tombstones.
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
      // The result contains only the number of changed events. Count the first ones.
      for (const id of group.ids.slice(0, changed.events))
        this.#changed.add(`${group.company}/${id}`);
    }
  }
}

/** Groups events by company, without duplicates. */
function groupByCompany(events: readonly EventId[]): Group[] {
  const groups = Map.groupBy(events, ({ company }) => company);
  return [...groups].map(([company, group]) => ({
    company,
    ids: [...new Set(group.map(({ id }) => id))],
  }));
}
