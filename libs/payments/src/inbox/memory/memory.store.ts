import { PaymentsError } from '../../payments.errors.js';
import type { PaymentsRuntime } from '../../payments.runtime.js';
import type {
  ClaimedDelivery,
  DeliverySelection,
  EventPage,
  IncomingEvent,
  InboxStats,
  InboxStore,
  Lease,
  StoredEvent,
  StoreReceipt,
} from '../store.contract.js';
import { deliveryRow, describeEvent, digestOf, eventRow, keyOf } from './memory.rows.js';
import type { DeliveryRow, EventRow } from './memory.rows.js';
import { MemoryQueue } from './memory.queue.js';
import { MemoryShelf } from './memory.shelf.js';
import type { MemoryLimits } from './memory.shelf.js';
import { countsOf, pageOf, prunable } from './memory.queries.js';

/** The store behind `memoryInbox()`. It counts on the monotonic clock: nothing in it outlives the process. */
export class MemoryStore implements InboxStore<never> {
  readonly capabilities = Object.freeze({
    durable: false,
    shared: false,
    transactional: false,
    ownClock: false,
  });
  readonly #shelf: MemoryShelf;
  readonly #queue = new MemoryQueue();
  readonly #paused = new Set<string>();
  readonly #listeners = new Set<() => void>();
  #seq = 0;
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
    this.#shelf.forgetExpired(this.#now());
    // Asked before room is made: what that forgets is known in this batch all the same.
    const known = events.map((event) => this.#shelf.known(event));
    const fresh = firstOfEach(events.filter((_event, index) => known[index] === undefined));
    const bytes = fresh.reduce((sum, { raw }) => sum + raw.byteLength, 0);
    this.#shelf.makeRoom(fresh.length, bytes);
    // Asked again, for one that came earlier in the batch.
    const receipts = events.map((event, index) =>
      this.#receiveOne(event, known[index] ?? this.#shelf.known(event)),
    );
    if (fresh.length > 0) this.#wake();
    return receipts;
  }

  async claim(request: {
    readonly handlers: readonly string[];
    readonly limit: number;
    readonly leaseMs: number;
  }): Promise<ClaimedDelivery[]> {
    if (this.#paused.has('*')) return [];
    const handlers = request.handlers.filter((handler) => !this.#paused.has(handler));
    const now = this.#now();
    const claimed: ClaimedDelivery[] = [];
    while (claimed.length < request.limit) {
      const row = this.#queue.next(handlers, now);
      if (row === undefined) break;
      this.#queue.lease(row, now + request.leaseMs);
      const takenOver = row.state === 'running';
      row.state = 'running';
      row.attempts += 1;
      row.token += 1;
      claimed.push(this.#claimed(row, takenOver));
    }
    return claimed;
  }

  async extend(lease: Lease, leaseMs: number): Promise<boolean> {
    return this.#held(lease, (row) => {
      row.dueAt = this.#now() + leaseMs;
    });
  }

  async complete(lease: Lease): Promise<boolean> {
    return this.#held(lease, (row) => this.#finish(row, 'done'));
  }

  async fail(lease: Lease, failure: { error: string; retryInMs: number | null }): Promise<boolean> {
    return this.#held(lease, (row) => {
      row.lastError = failure.error;
      if (failure.retryInMs === null) this.#finish(row, 'dead');
      else this.#reopen(row, failure.retryInMs);
    });
  }

  async release(lease: Lease, dueInMs = 0): Promise<boolean> {
    return this.#held(lease, (row) => {
      row.attempts -= 1;
      this.#reopen(row, dueInMs);
    });
  }

  async commit(): Promise<never> {
    throw new PaymentsError(
      'commit_unsupported',
      'The memory inbox has no transaction to commit in. Keep the inbox in the database your effects are in, ' +
        'or leave the settlement to the return of the handler.',
    );
  }

  async nextDueInMs(handlers: readonly string[]): Promise<number | null> {
    const awake = this.#paused.has('*') ? [] : handlers.filter((one) => !this.#paused.has(one));
    const next = this.#queue.nextDueAt(awake);
    return next === undefined ? null : next - this.#now();
  }

  onWake(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  async find(company: string, id: string): Promise<StoredEvent | undefined> {
    const row = this.#shelf.find(company, id);
    return row && describeEvent(row, this.#toDate);
  }

  async list(query: Parameters<InboxStore['list']>[0]): Promise<EventPage> {
    return pageOf(this.#shelf.all(), query, this.#toDate);
  }

  async stats(): Promise<InboxStats> {
    const paused = [...this.#paused].toSorted();
    return { ...countsOf(this.#shelf.all(), this.#now()), paused };
  }

  async redrive(
    selections: readonly DeliverySelection[],
    options: { readonly force: boolean; readonly dueInMs: readonly number[] },
  ): Promise<number> {
    let changed = 0;
    selections.forEach(({ company, id, handlers }, index) => {
      const event = this.#shelf.find(company, id);
      // Without its body there is nothing to run on.
      if (event === undefined || event.raw === null) return;
      for (const handler of new Set(handlers)) {
        const row = event.deliveries.find((delivery) => delivery.handler === handler);
        if (row?.state === 'running' || (row?.state === 'done' && !options.force)) continue;
        const again = row ?? this.#addDelivery(event, handler);
        if (again.state !== 'pending') again.attempts = 0;
        this.#reopen(again, options.dueInMs[index] ?? 0);
        changed += 1;
      }
    });
    if (changed > 0) this.#wake();
    return changed;
  }

  async skip(selections: readonly DeliverySelection[]): Promise<number> {
    const rows = selections.flatMap(
      ({ company, id, handlers }) =>
        this.#shelf
          .find(company, id)
          ?.deliveries.filter(
            ({ handler, state }) =>
              handlers.includes(handler) && (state === 'pending' || state === 'dead'),
          ) ?? [],
    );
    for (const row of new Set(rows)) this.#finish(row, 'skipped');
    return new Set(rows).size;
  }

  async pause(handler: string, paused: boolean): Promise<void> {
    if (paused) this.#paused.add(handler);
    else if (this.#paused.delete(handler)) this.#wake();
  }

  async prune(request: {
    readonly bodiesMs: number;
    readonly tombstonesMs: number;
    readonly limit: number;
  }): Promise<number> {
    let touched = 0;
    for (const row of prunable(this.#shelf.all(), request, this.#now())) {
      if (touched === request.limit) break;
      if (row.since <= this.#now() - request.tombstonesMs) this.#shelf.forget(row);
      else this.#shelf.entomb(row);
      touched += 1;
    }
    return touched;
  }

  readonly #toDate = (monotonicMs: number): Date =>
    new Date(this.runtime.now() + monotonicMs - this.#now());

  #now(): number {
    return this.runtime.monotonic();
  }

  #wake(): void {
    for (const listener of this.#listeners) listener();
  }

  #receiveOne(event: IncomingEvent, known: EventRow | undefined): StoreReceipt {
    if (known !== undefined) {
      const conflict = known.id === event.id && known.digest !== digestOf(event.raw);
      return { outcome: conflict ? 'conflict' : 'duplicate', id: known.id };
    }
    const now = { wall: this.runtime.now(), monotonic: this.#now() };
    const row = eventRow(event, (this.#seq += 1), now);
    this.#shelf.add(row);
    for (const handler of event.handlers) this.#reopen(this.#addDelivery(row, handler), 0);
    this.#shelf.update(row, now.monotonic);
    return { outcome: 'stored', id: event.id };
  }

  #addDelivery(event: EventRow, handler: string): DeliveryRow {
    const row = deliveryRow(event, handler, (this.#order += 1));
    event.deliveries.push(row);
    return row;
  }

  #reopen(row: DeliveryRow, dueInMs: number): void {
    this.#queue.remove(row);
    row.state = 'pending';
    row.dueAt = this.#now() + dueInMs;
    row.finishedAt = null;
    this.#queue.add(row);
    this.#shelf.update(row.event, this.#now());
  }

  #finish(row: DeliveryRow, state: 'done' | 'dead' | 'skipped'): void {
    row.state = state;
    row.finishedAt = new Date(this.runtime.now());
    this.#queue.remove(row);
    this.#shelf.update(row.event, this.#now());
  }

  #held(lease: Lease, act: (row: DeliveryRow) => void): boolean {
    const row = this.#shelf
      .find(lease.company, lease.id)
      ?.deliveries.find(({ handler }) => handler === lease.handler);
    const held = row?.state === 'running' && row.token === lease.token && row.dueAt > this.#now();
    if (held) act(row);
    return held;
  }

  #claimed(row: DeliveryRow, takenOver: boolean): ClaimedDelivery {
    const { company, id, receivedAt, raw, occurredAt } = row.event;
    const newerHandled = [...this.#shelf.related(row.event)].some(
      (other) =>
        other.occurredAt > occurredAt &&
        other.deliveries.some(({ handler, state }) => handler === row.handler && state === 'done'),
    );
    return {
      company,
      id,
      handler: row.handler,
      token: row.token,
      attempt: row.attempts,
      receivedAt,
      // Bodies of unfinished events are never let go.
      raw: Buffer.from(raw!),
      newerHandled,
      takenOver,
    };
  }
}

/** The events of a batch without their copies in it. */
function firstOfEach(events: readonly IncomingEvent[]): IncomingEvent[] {
  const seen = new Set<string>();
  return events.filter(({ company, id, dedupeKey }) => {
    const keys = [`id ${keyOf(company, id)}`, `key ${keyOf(company, dedupeKey)}`];
    if (keys.some((key) => seen.has(key))) return false;
    for (const key of keys) seen.add(key);
    return true;
  });
}
