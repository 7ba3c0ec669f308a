import type { PaymentsRuntime } from '../payments.runtime.js';
import type {
  ClaimedDelivery,
  IncomingEvent,
  InboxStore,
  Lease,
  StoredEvent,
  StoreReceipt,
} from './inbox.store.js';
import { MemoryQueue } from './memory.queue.js';
import { deliveryRow, digestOf, eventRow, storedDeliveries, storedEvent } from './memory.rows.js';
import type { DeliveryRow, EventRow } from './memory.rows.js';
import { MemoryShelf } from './memory.shelf.js';
import type { MemoryLimits } from './memory.shelf.js';

/** The store behind `memoryInbox()`. It counts on the monotonic clock: nothing in it outlives the process. */
export class MemoryStore implements InboxStore {
  readonly capabilities = Object.freeze({ durable: false });
  readonly #shelf: MemoryShelf;
  readonly #queue = new MemoryQueue();
  #order = 0;

  constructor(
    limits: MemoryLimits,
    private readonly runtime: PaymentsRuntime,
  ) {
    this.#shelf = new MemoryShelf(limits);
  }

  async open(): Promise<void> {}

  async close(): Promise<void> {}

  async receive(events: readonly IncomingEvent[]): Promise<StoreReceipt[]> {
    this.#shelf.forgetExpired(this.runtime.monotonic());
    // Asked before room is made: what that forgets is known in this batch all the same.
    const known = events.map((event) => this.#known(event));
    const fresh = firstOfEach(events.filter((_, index) => known[index] === undefined));
    const returning = events.filter((event, index) => lacksBody(event, known[index]));
    const bytes = [...fresh, ...returning].reduce((sum, { raw }) => sum + raw.byteLength, 0);
    this.#shelf.makeRoom(fresh.length, bytes);
    return events.map((event, index) => {
      // Again, for one that came earlier in the batch.
      const row = known[index] ?? this.#known(event);
      return row === undefined ? receipt('stored', this.#insert(event)) : this.#again(event, row);
    });
  }

  async claim(request: {
    readonly handlers: readonly string[];
    readonly limit: number;
    readonly leaseMs: number;
  }): Promise<ClaimedDelivery[]> {
    const now = this.runtime.monotonic();
    const claimed: ClaimedDelivery[] = [];
    while (claimed.length < request.limit) {
      const row = this.#queue.next(request.handlers, now);
      if (row === undefined) break;
      this.#queue.lease(row, now + request.leaseMs);
      row.state = 'running';
      row.attempts += 1;
      row.token += 1;
      const { company, id, receivedAt, raw } = row.event;
      const { handler, token, attempts: attempt } = row;
      // Bodies of unfinished events are never let go.
      claimed.push({ company, id, handler, token, attempt, receivedAt, raw: raw! });
    }
    return claimed;
  }

  async extend(lease: Lease, leaseMs: number): Promise<boolean> {
    return this.#held(lease, (row) => {
      row.dueAt = this.runtime.monotonic() + leaseMs;
    });
  }

  async complete(lease: Lease): Promise<boolean> {
    return this.#held(lease, (row) => this.#finish(row, 'done'));
  }

  async fail(lease: Lease, failure: { error: string; retryInMs: number | null }): Promise<boolean> {
    return this.#held(lease, (row) => {
      row.lastError = failure.error;
      if (failure.retryInMs === null) this.#finish(row, 'dead');
      else this.#wait(row, failure.retryInMs);
    });
  }

  async release(lease: Lease): Promise<boolean> {
    return this.#held(lease, (row) => {
      row.attempts -= 1;
      this.#wait(row, 0);
    });
  }

  async expedite(company: string, id: string): Promise<void> {
    const event = this.#shelf.find(company, id);
    // Without its body it cannot run again.
    if (event === undefined || event.raw === null) return;
    for (const row of event.deliveries) {
      if (row.state !== 'pending' && row.state !== 'dead') continue;
      if (row.state === 'dead') row.attempts = 0;
      this.#shelf.reopen(event);
      this.#wait(row, 0);
    }
  }

  async nextDueInMs(handlers: readonly string[]): Promise<number | null> {
    const next = this.#queue.nextDueAt(handlers);
    return next === undefined ? null : next - this.runtime.monotonic();
  }

  async find(company: string, id: string): Promise<StoredEvent | undefined> {
    const row = this.#shelf.find(company, id);
    return row && storedEvent(row);
  }

  #known({ company, dedupeKey, id }: IncomingEvent): EventRow | undefined {
    return this.#shelf.known(company, dedupeKey, id);
  }

  #insert(event: IncomingEvent): EventRow {
    const now = this.runtime.monotonic();
    const row = eventRow(event, new Date(this.runtime.now()));
    this.#shelf.add(row);
    for (const handler of event.handlers) {
      const delivery = deliveryRow(row, handler, (this.#order += 1), now);
      row.deliveries.push(delivery);
      this.#queue.add(delivery);
    }
    if (row.deliveries.length === 0) this.#shelf.finish(row, now);
    return row;
  }

  /** A copy changes nothing, but where the body was let go of an event that may yet run, it brings it back. */
  #again(event: IncomingEvent, row: EventRow): StoreReceipt {
    if (lacksBody(event, row)) this.#shelf.restore(row, event.raw);
    const conflict = row.id === event.id && row.digest !== digestOf(event.raw);
    return receipt(conflict ? 'conflict' : 'duplicate', row);
  }

  #wait(row: DeliveryRow, ms: number): void {
    this.#queue.remove(row);
    row.state = 'pending';
    row.dueAt = this.runtime.monotonic() + ms;
    this.#queue.add(row);
  }

  #finish(row: DeliveryRow, state: 'done' | 'dead'): void {
    this.#queue.remove(row);
    row.state = state;
    const { deliveries } = row.event;
    if (deliveries.some((other) => other.state === 'pending' || other.state === 'running')) return;
    this.#shelf.finish(row.event, this.runtime.monotonic());
  }

  #held(lease: Lease, act: (row: DeliveryRow) => void): boolean {
    const row = this.#shelf
      .find(lease.company, lease.id)
      ?.deliveries.find(({ handler }) => handler === lease.handler);
    const held =
      row?.state === 'running' && row.token === lease.token && row.dueAt > this.runtime.monotonic();
    if (held) act(row);
    return held;
  }
}

/** The events of a batch without their copies in it. */
function firstOfEach(events: readonly IncomingEvent[]): IncomingEvent[] {
  const seen = new Set<string>();
  return events.filter(({ company, id, dedupeKey }) => {
    const keys = [`${company}\n${id}`, `${company}\n${dedupeKey}`];
    if (keys.some((key) => seen.has(key))) return false;
    for (const key of keys) seen.add(key);
    return true;
  });
}

/** Whether the event is a copy of one that is dead and has lost the body it would run again with. */
function lacksBody({ id, raw }: IncomingEvent, row: EventRow | undefined): boolean {
  return (
    row !== undefined &&
    row.raw === null &&
    row.id === id &&
    row.deliveries.some(({ state }) => state === 'dead') &&
    row.digest === digestOf(raw)
  );
}

function receipt(outcome: StoreReceipt['outcome'], row: EventRow): StoreReceipt {
  return { outcome, id: row.id, deliveries: storedDeliveries(row) };
}
