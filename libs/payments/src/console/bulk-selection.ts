import type { PaymentInbox } from '../inbox/payment-inbox.js';
import type { SelectionResult } from '../inbox/inbox-redrive.js';
import type { DeliveryState, StoredEvent } from '../inbox/inbox-store.js';
import type { EventName } from './console-queries.js';

/** Events of one company, as many as a filter takes. */
interface Group {
  readonly company: string;
  readonly ids: readonly string[];
}

/**
 * Events that an operator selected one by one: the action is for each delivery that it can change, not only for dead
 * ones. The inbox acts on one state at a time, so the deliveries are grouped by state first.
 */
export class BulkSelection {
  readonly #touched = new Set<string>();
  #deliveries = 0;

  private constructor(
    private readonly events: readonly StoredEvent[],
    private readonly handler: string | undefined,
  ) {}

  static async find(
    inbox: PaymentInbox,
    names: readonly EventName[],
    handler: string | undefined,
  ): Promise<BulkSelection> {
    const groups = groupByCompany(names.map(({ company, id }) => [company, id]));
    const events: StoredEvent[] = [];
    for (const { company, ids } of groups) {
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
   * Acts on events that have no delivery, or none to the handler that is named. Events without any are requested as
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
    return { events: this.#touched.size, deliveries: this.#deliveries };
  }

  #byHandler(state: DeliveryState): Map<string, StoredEvent[]> {
    const found = new Map<string, StoredEvent[]>();
    for (const event of this.events) {
      for (const { handler, state: itsOwn } of event.deliveries) {
        if (itsOwn !== state || (this.handler ?? handler) !== handler) continue;
        found.set(handler, [...(found.get(handler) ?? []), event]);
      }
    }
    return found;
  }

  async #each(
    wanted: readonly StoredEvent[],
    act: (group: Group) => Promise<SelectionResult>,
  ): Promise<void> {
    for (const group of groupByCompany(wanted.map(({ company, id }) => [company, id]))) {
      const { events, deliveries } = await act(group);
      this.#deliveries += deliveries;
      // If fewer were changed, the result does not say which: count the first ones.
      for (const id of group.ids.slice(0, events)) this.#touched.add(`${group.company}/${id}`);
    }
  }
}

function groupByCompany(names: readonly (readonly [company: string, id: string])[]): Group[] {
  const groups = new Map<string, string[]>();
  for (const [company, id] of names) groups.set(company, [...(groups.get(company) ?? []), id]);
  return [...groups].map(([company, ids]) => ({ company, ids }));
}
