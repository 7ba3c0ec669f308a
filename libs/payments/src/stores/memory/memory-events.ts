import { createHash } from 'node:crypto';
import { PaymentsError } from '../../errors/payments-error.js';
import { HISTORY_LENGTH, MAX_REPEATS } from '../../inbox/store/stored-event.js';
import type { HistoryEntry } from '../../inbox/store/stored-event.js';
import type {
  DeliveryState,
  IncomingEvent,
  InboxStore,
  StoredEvent,
} from '../../inbox/store/inbox-store.js';

/** An empty array that all rows share, because most events have no repeats and most deliveries have no history. */
const NONE: readonly never[] = Object.freeze([]);

export class MemoryEvent {
  readonly idKey: string;
  readonly transaction: string | null;
  /** Whether another event with the same type and transaction counts as a copy of this event. */
  readonly isOnce: boolean;
  /** The SHA-256 of the deleted body if the event is a tombstone, whose deliveries are hidden; otherwise `null`. */
  digest: string | null = null;
  repeats: StoredEvent['repeats'] = NONE;
  /** The deliveries. A tombstone keeps its deliveries, because their ordering keys record which events were handled. */
  deliveries: readonly MemoryDelivery[] = NONE;
  /** The time, on the monotonic clock, when the last delivery of the event finished; `null` until then. */
  finishedAt: number | null = null;
  queue: PriorityQueue<MemoryEvent> | null = null;
  position = 0;

  /**
   * `receivedMs` is on the wall clock, `receivedAt` on the monotonic clock. `seq` is the number of the event in the
   * order of receipt.
   */
  constructor(
    public event: IncomingEvent,
    readonly receivedMs: number,
    readonly receivedAt: number,
    readonly seq: number,
  ) {
    const { company, id, orderingKey, oncePerTransaction } = event;
    this.idKey = keyOf(company, id);
    this.transaction = orderingKey === null ? null : keyOf(company, orderingKey);
    this.isOnce = oncePerTransaction && orderingKey !== null;
  }
}

/** A line break separates the company and the name, because the id of a company never contains a line break. */
export const keyOf = (company: string, name: string): string => `${company}\n${name}`;

export class MemoryDelivery {
  readonly key: OrderingKey;
  state: DeliveryState = 'pending';
  attempts = 0;
  /** The fencing token of the last claim. */
  token = 0;
  /** The time of the last claim, in milliseconds since the epoch. */
  startedAt = 0;
  /** The time when the delivery finished, in milliseconds since the epoch; `null` until then. */
  finishedAt: number | null = null;
  lastError: string | null = null;
  frames: string | null = null;
  /** The failed attempts, and all attempts before the last redrive; see {@link history}. */
  earlier: readonly HistoryEntry[] = NONE;
  queue: PriorityQueue<MemoryDelivery> | null = null;
  position = 0;

  /** @param dueAt the time when the delivery is due if it is pending, on the monotonic clock. */
  constructor(
    readonly row: MemoryEvent,
    readonly handler: HandlerQueue,
    public dueAt: number,
  ) {
    this.key = handler.join(row.transaction);
  }

  get isOpen(): boolean {
    return this.state === 'pending' || this.state === 'running';
  }

  get history(): readonly HistoryEntry[] {
    return this.state === 'done' ? this.withAttempt(this.finishedAt!, 'd') : this.earlier;
  }

  withAttempt(endedAt: number, ...outcome: ['d'] | ['f', error: string]): HistoryEntry[] {
    const tookMs = endedAt - this.startedAt;
    const last: HistoryEntry = [this.attempts, this.startedAt, tookMs, ...outcome];
    return [...this.earlier.slice(1 - HISTORY_LENGTH), last];
  }
}

/**
 * The deliveries with the same company, handler and ordering key, or a single delivery without an ordering key. At most
 * one of these deliveries runs at a time. While no delivery runs, the pending delivery that is due first is claimable,
 * and the others wait.
 */
class OrderingKey implements Queued<OrderingKey> {
  size = 0;
  running: MemoryDelivery | null = null;
  /** The pending deliveries; `null` until a delivery is pending, because most deliveries are assigned on receipt. */
  pending: PriorityQueue<MemoryDelivery> | null = null;
  /** The latest `occurredAt` of the events whose deliveries are done, in milliseconds since the epoch. */
  newestDone = -Infinity;
  queue: PriorityQueue<OrderingKey> | null = null;
  position = 0;

  constructor(readonly name: string | null) {}

  get dueAt(): number {
    return this.pending?.first?.dueAt ?? Infinity;
  }

  isFree(now: number): boolean {
    return this.running === null && this.dueAt > now;
  }
}

/** The deliveries of one handler, by ordering key. */
export class HandlerQueue {
  /**
   * The ordering keys with pending deliveries. A key is not in this queue while one delivery of the key runs and
   * another delivery of the key is due.
   */
  readonly #claimable = new PriorityQueue<OrderingKey>((a, b) =>
    dueBefore(a.pending!.first!, b.pending!.first!),
  );
  readonly #keys = new Map<string, OrderingKey>();

  constructor(readonly name: string) {}

  /**
   * When the next delivery becomes claimable, on the monotonic clock; `Infinity` if no delivery can become claimable.
   */
  get nextDueAt(): number {
    return this.#claimable.first?.dueAt ?? Infinity;
  }

  /** Returns the delivery that became due first, among the deliveries whose ordering key has no running delivery. */
  nextDue(now: number): MemoryDelivery | undefined {
    for (let key = this.#claimable.first; key && key.dueAt <= now; key = this.#claimable.first) {
      if (key.running === null) return key.pending!.first;
      this.#claimable.delete(key);
    }
    return undefined;
  }

  /** Returns the ordering key for a new delivery. With the name `null`, the delivery gets a key of its own. */
  join(name: string | null): OrderingKey {
    let key = name === null ? undefined : this.#keys.get(name);
    key ??= new OrderingKey(name);
    if (name !== null && key.size === 0) this.#keys.set(name, key);
    key.size += 1;
    return key;
  }

  /** Undoes {@link join} for a delivery that the store deletes. */
  leave(key: OrderingKey): void {
    key.size -= 1;
    if (key.size === 0 && key.name !== null) this.#keys.delete(key.name);
  }

  /**
   * Updates the queue after the state of a delivery changed. Returns whether another delivery with the same ordering
   * key is now claimable.
   */
  move(row: MemoryDelivery, state: DeliveryState, now: number, dueAt = row.dueAt): boolean {
    const { key } = row;
    key.queue?.delete(key);
    row.queue?.delete(row);
    row.state = state;
    row.dueAt = dueAt;
    if (key.running === row) key.running = null;
    if (state === 'running') key.running = row;
    if (state === 'pending') (key.pending ??= new PriorityQueue(dueBefore)).add(row);
    const next = key.pending?.first;
    if (next === undefined || (key.running !== null && next.dueAt <= now)) return false;
    this.#claimable.add(key);
    return key.running === null && next !== row && next.dueAt <= now;
  }
}

const dueBefore = (a: MemoryDelivery, b: MemoryDelivery): boolean =>
  a.dueAt < b.dueAt || (a.dueAt === b.dueAt && a.row.seq < b.row.seq);

const FULL =
  'The memory inbox is full of events whose handlers have not finished. Raise "maxEvents" or ' +
  '"maxBytes", find out what delays the handlers, or keep the inbox in a database.';

const NO_BODY = Buffer.alloc(0);

export type MemoryLimits = Readonly<Record<'maxEvents' | 'maxBytes', number>>;

export class EventIndex {
  readonly #byId = new Map<string, MemoryEvent>();
  /** The events of the types that are stored once per transaction, by type and transaction. */
  readonly #once = new Map<string, Map<string, MemoryEvent>>();
  // An event whose deliveries have all finished is in one of the next two queues.
  readonly #finished = new PriorityQueue<MemoryEvent>(finishedBefore);
  readonly #tombstones = new PriorityQueue<MemoryEvent>(finishedBefore);
  /** The latest time of receipt, by the wall clock, of the events that are deleted or whose deliveries are hidden. */
  deletedMs = -Infinity;
  #bytes = 0;
  #finishedBytes = 0;

  constructor(private readonly limits: MemoryLimits) {}

  /** All events, in the order of receipt. */
  all(): IterableIterator<MemoryEvent> {
    return this.#byId.values();
  }

  find(company: string, id: string): MemoryEvent | undefined {
    return this.#byId.get(keyOf(company, id));
  }

  /** Returns the event of the transaction with this type, if the type is stored once per transaction. */
  findOnce(company: string, eventType: string, transactionId: string): MemoryEvent | undefined {
    return this.#once.get(eventType)?.get(keyOf(company, transactionId));
  }

  /** Returns the stored event that `row` is a copy of; `undefined` if `row` is not a copy. */
  original(row: MemoryEvent): MemoryEvent | undefined {
    const original = this.#byId.get(row.idKey);
    if (original !== undefined || !row.isOnce || row.event.stale) return original;
    return this.#once.get(row.event.eventType)?.get(row.transaction!);
  }

  /** Adds an event. Call {@link update} after you add the deliveries of the event. */
  add(row: MemoryEvent): void {
    this.#byId.set(row.idKey, row);
    if (row.isOnce && !row.event.stale) this.#ofType(row).set(row.transaction!, row);
    this.#bytes += sizeOf(row);
  }

  /**
   * Makes a stale event count as the event of its transaction. Returns `false`, and changes nothing, if the transaction
   * already has another event of the type.
   */
  refresh(row: MemoryEvent): boolean {
    if (row.isOnce && this.#ofType(row).has(row.transaction!)) return false;
    row.event = { ...row.event, stale: false };
    if (row.isOnce) this.#ofType(row).set(row.transaction!, row);
    return true;
  }

  /**
   * Records whether all deliveries of the event have finished. Call this method after the event got deliveries, and
   * after a delivery finished or was reopened.
   */
  update(row: MemoryEvent, now: number): void {
    let open = false;
    for (const delivery of row.deliveries) open ||= delivery.isOpen;
    if (open === (row.finishedAt === null)) return;
    if (open) row.queue!.delete(row);
    row.finishedAt = open ? null : now;
    if (!open) this.#finished.add(row);
    this.#finishedBytes += open ? -sizeOf(row) : sizeOf(row);
  }

  /**
   * Deletes finished events until the remaining events fit the limits. Deletes bodies first, then whole events.
   *
   * @throws PaymentsError `inbox_full` if the unfinished events alone exceed the limits; this method has then deleted
   *   only the new events in `rows`.
   */
  makeRoom(rows: readonly MemoryEvent[]): void {
    const { maxEvents, maxBytes } = this.limits;
    const unfinished = this.#byId.size - this.#finished.size - this.#tombstones.size;
    if (unfinished > maxEvents || this.#bytes - this.#finishedBytes > maxBytes) {
      for (const row of rows) if (this.#byId.get(row.idKey) === row) this.forget(row);
      throw new PaymentsError('inbox_full', FULL);
    }
    while (this.#bytes > maxBytes) {
      const row = this.#finished.first!;
      // A dead letter must not become a tombstone, because its copies would then count as handled.
      if (row.deliveries.some(({ state }) => state === 'dead')) this.forget(row);
      else this.#replaceWithTombstone(row);
    }
    while (this.#byId.size > maxEvents) {
      const [a, b] = [this.#tombstones.first, this.#finished.first];
      this.forget(a === undefined || (b !== undefined && finishedBefore(b, a)) ? b! : a);
    }
  }

  /** See `InboxStore.prune`. `now` is on the monotonic clock, `wallMs` on the wall clock. */
  prune(request: Parameters<InboxStore['prune']>[0], now: number, wallMs: number): number {
    const { bodiesMs, tombstonesMs, limit } = request;
    let changed = 0;
    for (const row of this.all()) {
      const age = now - row.receivedAt;
      if (changed === limit || age <= Math.min(bodiesMs, tombstonesMs)) break;
      const isExpired = Math.min(age, wallMs - row.event.occurredAt.getTime()) > tombstonesMs;
      const settled = row.deliveries.every(({ state }) => state === 'done' || state === 'skipped');
      if (!settled || (row.digest !== null && !isExpired)) continue;
      if (isExpired) this.forget(row);
      else this.#replaceWithTombstone(row);
      changed += 1;
    }
    return changed;
  }

  forget(row: MemoryEvent): void {
    this.#remove(row);
    for (const { handler, key } of row.deliveries) handler.leave(key);
    this.#byId.delete(row.idKey);
    if (row.isOnce && !row.event.stale) this.#ofType(row).delete(row.transaction!);
  }

  #ofType({ event: { eventType } }: MemoryEvent): Map<string, MemoryEvent> {
    let events = this.#once.get(eventType);
    if (events === undefined) this.#once.set(eventType, (events = new Map()));
    return events;
  }

  /** Deletes the body and hides the deliveries. Copies of the event are still recognised as duplicates. */
  #replaceWithTombstone(row: MemoryEvent): void {
    this.#remove(row);
    row.digest = digestOf(row.event.raw);
    row.event = { ...row.event, raw: NO_BODY, headers: {}, summary: null };
    this.#tombstones.add(row);
  }

  #remove(row: MemoryEvent): void {
    this.#bytes -= sizeOf(row);
    if (row.finishedAt === null) return;
    this.#finishedBytes -= sizeOf(row);
    row.queue!.delete(row);
    this.deletedMs = Math.max(this.deletedMs, row.receivedMs);
  }
}

/**
 * If the copy has another id than the original event, adds this id to the repeats of the original event. Returns the
 * outcome of the copy's receipt.
 */
export function addCopy(original: MemoryEvent, copy: MemoryEvent): 'duplicate' | 'conflict' {
  const { id, raw } = copy.event;
  if (id === original.event.id) {
    const { digest, event } = original;
    const isSame = digest === null ? event.raw.equals(raw) : digest === digestOf(raw);
    return isSame ? 'duplicate' : 'conflict';
  }
  if (!original.repeats.some((repeat) => repeat.id === id)) {
    const repeat = { id, receivedAt: new Date(copy.receivedMs) };
    original.repeats = [...original.repeats, repeat].slice(-MAX_REPEATS);
  }
  return 'duplicate';
}

const finishedBefore = (a: MemoryEvent, b: MemoryEvent): boolean =>
  a.finishedAt! < b.finishedAt! || (a.finishedAt === b.finishedAt && a.seq < b.seq);

const digestOf = (raw: Buffer): string => createHash('sha256').update(raw).digest('base64');

const sizeOf = ({ event }: MemoryEvent): number => event.raw.byteLength;

/** The queue that contains the item, if any, and the index of the item in this queue. The queue updates both fields. */
export interface Queued<T extends Queued<T>> {
  queue: PriorityQueue<T> | null;
  position: number;
}

/** A binary heap. Each item stores its position, so the queue can delete any item without a search. */
export class PriorityQueue<T extends Queued<T>> {
  readonly #items: T[] = [];

  /** @param before whether the first item is before the second; must not change while both items are queued */
  constructor(private readonly before: (a: T, b: T) => boolean) {}

  get size(): number {
    return this.#items.length;
  }

  get first(): T | undefined {
    return this.#items[0];
  }

  add(item: T): void {
    item.queue = this;
    this.#up(item, this.#items.push(item) - 1);
  }

  delete(item: T): void {
    const last = this.#items.pop()!;
    if (last !== item) this.#down(last, this.#up(last, item.position));
    item.queue = null;
  }

  /** Moves the item from an index towards the start of the heap. Returns the final index of the item. */
  #up(item: T, index: number): number {
    let at = index;
    for (let parent = (at - 1) >> 1; at > 0; parent = (at - 1) >> 1) {
      if (!this.before(item, this.#items[parent]!)) break;
      this.#put(this.#items[parent]!, at);
      at = parent;
    }
    return this.#put(item, at);
  }

  #down(item: T, index: number): void {
    let at = index;
    for (let child = 2 * at + 1; child < this.#items.length; child = 2 * at + 1) {
      const right = this.#items[child + 1];
      if (right !== undefined && this.before(right, this.#items[child]!)) child += 1;
      if (!this.before(this.#items[child]!, item)) break;
      this.#put(this.#items[child]!, at);
      at = child;
    }
    this.#put(item, at);
  }

  #put(item: T, index: number): number {
    this.#items[index] = item;
    item.position = index;
    return index;
  }
}
