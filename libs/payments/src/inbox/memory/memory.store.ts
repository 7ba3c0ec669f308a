import { PaymentsError } from '../../payments.errors.js';
import type { PaymentsRuntime } from '../../payments.runtime.js';
import { addCounts, firstMinute, KEPT_MINUTES, minuteOf, toActivity } from '../activity.minutes.js';
import type { ActivityCounts, ActivityMinute, RecordedMinute } from '../activity.minutes.js';
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
} from '../inbox-store.js';
import { MemoryDeliveries } from './memory.deliveries.js';
import { conflicts, describeEvent, eventRow, keyOf } from './memory.rows.js';
import type { EventRow } from './memory.rows.js';
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
  readonly #deliveries: MemoryDeliveries;
  /** The minutes that were recorded, by their start, the oldest first. */
  readonly #minutes = new Map<number, RecordedMinute>();
  readonly #paused = new Set<string>();
  readonly #listeners = new Set<() => void>();
  #seq = 0;

  constructor(
    limits: MemoryLimits,
    private readonly runtime: PaymentsRuntime,
  ) {
    this.#shelf = new MemoryShelf(limits);
    this.#deliveries = new MemoryDeliveries(this.#shelf, runtime);
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
    const { limit, leaseMs } = request;
    return this.#deliveries.claim(this.#awake(request.handlers), limit, leaseMs);
  }

  async extend(lease: Lease, leaseMs: number): Promise<boolean> {
    return this.#deliveries.extend(lease, leaseMs);
  }

  async complete(lease: Lease): Promise<boolean> {
    return this.#deliveries.complete(lease);
  }

  async fail(lease: Lease, failure: { error: string; retryInMs: number | null }): Promise<boolean> {
    return this.#deliveries.fail(lease, failure);
  }

  async release(lease: Lease, dueInMs = 0): Promise<boolean> {
    return this.#deliveries.release(lease, dueInMs);
  }

  async commit(): Promise<never> {
    throw commitUnsupported();
  }

  async nextDueInMs(handlers: readonly string[]): Promise<number | null> {
    return this.#deliveries.nextDueInMs(this.#awake(handlers));
  }

  onWake(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  async find(company: string, id: string): Promise<StoredEvent | undefined> {
    const row = this.#shelf.find(company, id);
    return row && describeEvent(row, this.#deliveries.toDate);
  }

  async list(query: Parameters<InboxStore['list']>[0]): Promise<EventPage> {
    return pageOf(this.#shelf.all(), query, this.#deliveries.toDate);
  }

  async stats(): Promise<InboxStats> {
    const paused = [...this.#paused].toSorted();
    return { ...countsOf(this.#shelf.all(), this.#now()), paused };
  }

  async record(counts: ActivityCounts): Promise<void> {
    const at = minuteOf(this.runtime.now());
    const known = this.#minutes.get(at);
    this.#minutes.set(at, { at, ...(known ? addCounts(known, counts) : counts) });
    this.#forgetMinutes();
  }

  async activity(minutes: number): Promise<ActivityMinute[]> {
    return toActivity(this.#minutes.values(), this.runtime.now(), minutes);
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
        const again = row ?? this.#deliveries.add(event, handler);
        if (again.state !== 'pending') again.attempts = 0;
        this.#deliveries.reopen(again, options.dueInMs[index] ?? 0);
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
    for (const row of new Set(rows)) this.#deliveries.finish(row, 'skipped');
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
    this.#forgetMinutes();
    let touched = 0;
    const now = { wall: this.runtime.now(), monotonic: this.#now() };
    for (const { row, forget } of prunable(this.#shelf.all(), request, now)) {
      if (touched === request.limit) break;
      if (forget) this.#shelf.forget(row);
      else this.#shelf.entomb(row);
      touched += 1;
    }
    return touched;
  }

  /** Those that are not paused. */
  #awake(handlers: readonly string[]): string[] {
    if (this.#paused.has('*')) return [];
    return handlers.filter((handler) => !this.#paused.has(handler));
  }

  #forgetMinutes(): void {
    const first = firstMinute(this.runtime.now(), KEPT_MINUTES);
    for (const at of this.#minutes.keys()) if (at < first) this.#minutes.delete(at);
  }

  #now(): number {
    return this.runtime.monotonic();
  }

  #wake(): void {
    for (const listener of this.#listeners) listener();
  }

  #receiveOne(event: IncomingEvent, known: EventRow | undefined): StoreReceipt {
    if (known !== undefined) {
      const conflict = known.id === event.id && conflicts(known, event.raw);
      return { outcome: conflict ? 'conflict' : 'duplicate', id: known.id };
    }
    const now = { wall: this.runtime.now(), monotonic: this.#now() };
    const row = eventRow(event, (this.#seq += 1), now);
    this.#shelf.add(row);
    for (const handler of event.handlers) {
      this.#deliveries.reopen(this.#deliveries.add(row, handler), 0);
    }
    this.#shelf.update(row, now.monotonic);
    return { outcome: 'stored', id: event.id };
  }
}

/** The events of a batch without their copies in it. */
function firstOfEach(events: readonly IncomingEvent[]): readonly IncomingEvent[] {
  if (events.length < 2) return events;
  const seen = new Set<string>();
  return events.filter(({ company, id, dedupeKey }) => {
    const keys = [`id ${keyOf(company, id)}`, `key ${keyOf(company, dedupeKey)}`];
    if (keys.some((key) => seen.has(key))) return false;
    for (const key of keys) seen.add(key);
    return true;
  });
}

/** The error of `context.commit()` with an inbox that has no transactions. */
export function commitUnsupported(): PaymentsError {
  return new PaymentsError(
    'commit_unsupported',
    'The memory inbox has no transaction to commit in. Keep the inbox in the database your effects are in, ' +
      'or leave the settlement to the return of the handler.',
  );
}
