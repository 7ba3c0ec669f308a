import { equal } from 'node:assert/strict';
import { DELIVERY_TRANSITIONS } from '../../inbox/store/store-operations.js';
import type { InboxStore } from '../../inbox/store/inbox-store.js';

/** Watches which states deliveries change between, and compares that with the table of all transitions. */
export class Transitions {
  readonly seen = new Set<string>();
  #states = new Map<string, string>();

  constructor(private readonly store: InboxStore) {}

  /** Runs one operation. Whatever it changed must be a transition of its own. */
  async during<T>(operation: string, run: () => Promise<T>): Promise<T> {
    const result = await run();
    const now = await this.#read();
    for (const [delivery, to] of now) {
      const from = this.#states.get(delivery) ?? 'new';
      if (from === to) continue;
      const found = DELIVERY_TRANSITIONS.filter(
        (known) => known.from === from && known.to === to && known.by.split(' ')[0] === operation,
      );
      equal(found.length, 1, `${operation} changed a delivery from ${from} to ${to}`);
      this.seen.add(`${from} > ${to} by ${found[0]!.by}`);
    }
    this.#states = now;
    return result;
  }

  async #read(): Promise<Map<string, string>> {
    const page = await this.store.list({ filter: {}, order: 'oldest', limit: 1000, after: null });
    return new Map(
      page.events.flatMap(({ id, deliveries }) =>
        deliveries.map(({ handler, state }) => [`${id} ${handler}`, state]),
      ),
    );
  }
}
