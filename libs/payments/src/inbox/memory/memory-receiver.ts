import type { PaymentsRuntime } from '../../payments.runtime.js';
import type { IncomingEvent, StoreReceipt } from '../inbox-store.js';
import type { MemoryDeliveries } from './memory-deliveries.js';
import type { MemoryEvents } from './memory-events.js';
import type { MemoryQueue } from './memory-queue.js';
import { conflicts, eventRow, keyOf } from './memory-rows.js';
import type { EventRow } from './memory-rows.js';

/** How many repeats of an event are kept. */
const REPEATS = 20;

/** Stores new events in a memory store, and recognizes copies. */
export class MemoryReceiver {
  #seq = 0;

  constructor(
    private readonly events: MemoryEvents,
    private readonly deliveries: MemoryDeliveries,
    private readonly queue: MemoryQueue,
    private readonly runtime: PaymentsRuntime,
    private readonly isCurrent: (event: IncomingEvent) => boolean,
    private readonly isPaused: (handler: string) => boolean,
  ) {}

  /** @throws PaymentsError `inbox_full`, having stored none of them. */
  receive(events: readonly IncomingEvent[]): StoreReceipt[] {
    this.events.forgetExpired(this.runtime.monotonic());
    // Before room is made: what that deletes is known in this batch all the same.
    const known = events.map((event) => this.events.known(event));
    const fresh = firstOfEach(events.filter((event, n) => !known[n] && this.isCurrent(event)));
    const bytes = fresh.reduce((sum, { raw }) => sum + raw.byteLength, 0);
    this.events.makeRoom(fresh.length, bytes);
    return events.map((event, n) => {
      // Again, for what came earlier in the batch.
      const original = known[n] ?? this.events.known(event);
      if (original !== undefined) return this.#receiveCopy(event, original);
      if (this.isCurrent(event)) return this.#store(event);
      return { outcome: 'outdated', id: event.id, claimed: [], pending: false };
    });
  }

  #store(event: IncomingEvent): StoreReceipt {
    const { id, handlers, assign } = event;
    const now = this.runtime.monotonic();
    const row = eventRow(event, (this.#seq += 1), this.runtime.now(), now);
    // Before its deliveries are added, which are due.
    const free = handlers.filter(
      (handler) =>
        assign?.handlers.includes(handler) &&
        !this.isPaused(handler) &&
        this.queue.isFree(row, handler, now),
    );
    this.events.add(row);
    const rows = handlers.map((handler) => this.deliveries.add(row, handler, 0));
    this.events.update(row, now);
    const claimed = rows
      .filter(({ handler }) => free.includes(handler))
      .map((delivery) => this.deliveries.lease(delivery, assign!.worker));
    return { outcome: 'stored', id, claimed, pending: claimed.length < rows.length };
  }

  #receiveCopy({ id, raw }: IncomingEvent, known: EventRow): StoreReceipt {
    const receipt = { id: known.fixed.id, claimed: [], pending: false };
    if (id === receipt.id) {
      return { ...receipt, outcome: conflicts(known, raw) ? 'conflict' : 'duplicate' };
    }
    if (!known.repeats.some((repeat) => repeat.id === id)) {
      const repeat = { id, receivedAt: new Date(this.runtime.now()) };
      known.repeats = known.repeats.concat(repeat).slice(-REPEATS);
    }
    return { ...receipt, outcome: 'duplicate' };
  }
}

/** The events without copies of events before them. */
function firstOfEach(events: readonly IncomingEvent[]): readonly IncomingEvent[] {
  if (events.length < 2) return events;
  const seen = new Set<string>();
  return events.filter(({ company, id, eventType, onceKey }) => {
    const keys = [keyOf('id', company, id)];
    if (onceKey !== null) keys.push(keyOf('once', company, eventType, onceKey));
    const isCopy = keys.some((key) => seen.has(key));
    for (const key of isCopy ? [] : keys) seen.add(key);
    return !isCopy;
  });
}
