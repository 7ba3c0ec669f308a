import { HISTORY_LENGTH } from '../../inbox/store/stored-event.js';
import type { HistoryEntry } from '../../inbox/store/stored-event.js';
import type { DeliveryState, IncomingEvent, StoredEvent } from '../../inbox/store/inbox-store.js';
import { PriorityQueue } from './priority-queue.js';

/** One empty array for all rows: most events have no repeats, and most deliveries no history. */
const NONE: readonly never[] = Object.freeze([]);

/** An event in the memory store. */
export class MemoryEvent {
  /** The company and the id. */
  readonly idKey: string;
  /** The company and the ordering key; `null` without an ordering key. */
  readonly transaction: string | null;
  /** Whether another event of its type and transaction is a copy of it. */
  readonly isOnce: boolean;
  /** The SHA-256 of the body if this is a tombstone: an event whose body was deleted, and whose deliveries are hidden. */
  digest: string | null = null;
  repeats: StoredEvent['repeats'] = NONE;
  /** A tombstone keeps its deliveries, because their ordering keys record which events were handled. */
  deliveries: readonly MemoryDelivery[] = NONE;
  /** The time, on the monotonic clock, when the last delivery of the event finished. `null` before. */
  finishedAt: number | null = null;
  queue: PriorityQueue<MemoryEvent> | null = null;
  position = 0;

  /** `receivedMs` is on the wall clock, and `receivedAt` on the monotonic clock. `seq` is the order of receipt. */
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

/** A key of something that belongs to a company, whose id contains no line break. */
export const keyOf = (company: string, name: string): string => `${company}\n${name}`;

/** A delivery in the memory store. */
export class MemoryDelivery {
  readonly key: OrderingKey | null;
  state: DeliveryState = 'pending';
  attempts = 0;
  /** Fencing token of the last claim. */
  token = 0;
  /** The times of the last claim and of the end of the delivery, in milliseconds since the epoch. */
  startedAt = 0;
  finishedAt: number | null = null;
  lastError: string | null = null;
  /** The attempts that failed, and all attempts from before a redrive; see {@link history}. */
  earlier: readonly HistoryEntry[] = NONE;
  queue: PriorityQueue<MemoryDelivery> | null = null;
  position = 0;

  /** @param dueAt when it is due if it is pending, on the monotonic clock. */
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

  /** The attempts that have ended. */
  get history(): readonly HistoryEntry[] {
    return this.state === 'done' ? this.withAttempt(this.finishedAt!, 'd') : this.earlier;
  }

  /** The history with the attempt that was started last. */
  withAttempt(endedAt: number, ...outcome: ['d'] | ['f', error: string]): HistoryEntry[] {
    const tookMs = endedAt - this.startedAt;
    const last: HistoryEntry = [this.attempts, this.startedAt, tookMs, ...outcome];
    return [...this.earlier.slice(1 - HISTORY_LENGTH), last];
  }
}

/** The deliveries of one company, handler and ordering key. At most one of them runs. */
interface OrderingKey {
  readonly name: string;
  size: number;
  running: MemoryDelivery | null;
  /** The pending delivery that is claimable next. While one runs, it is not due. */
  next: MemoryDelivery | null;
  /** All other pending deliveries. `null` before the first: most deliveries are assigned on receipt. */
  waiting: PriorityQueue<MemoryDelivery> | null;
  /** The latest time of the events whose deliveries are done. */
  newestDone: number;
}

/** The pending deliveries of one handler, and the ordering keys of all its deliveries. */
export class HandlerQueue {
  /** The pending deliveries without an ordering key, and the next one of each key. */
  readonly #claimable = new PriorityQueue<MemoryDelivery>(dueBefore);
  readonly #keys = new Map<string, OrderingKey>();

  constructor(readonly name: string) {}

  /** When the first delivery becomes claimable, on the monotonic clock; `Infinity` if there is none. */
  get nextDueAt(): number {
    return this.#claimable.first?.dueAt ?? Infinity;
  }

  /** The delivery that became due first, and whose ordering key is free. */
  nextDue(now: number): MemoryDelivery | undefined {
    for (let row = this.#claimable.first; row && row.dueAt <= now; row = this.#claimable.first) {
      if (!row.key?.running) return row;
      this.#hold(row.key);
    }
    return undefined;
  }

  /** The ordering key of one more delivery; `null` if its event has none. */
  join(name: string | null): OrderingKey | null {
    if (name === null) return null;
    let key = this.#keys.get(name);
    if (key === undefined) {
      key = { name, size: 0, running: null, next: null, waiting: null, newestDone: -Infinity };
      this.#keys.set(name, key);
    }
    key.size += 1;
    return key;
  }

  /** Undoes {@link join} for a delivery that is forgotten. */
  leave(key: OrderingKey | null): void {
    if (key !== null && (key.size -= 1) === 0) this.#keys.delete(key.name);
  }

  /** Changes the state, also that of a new delivery. Returns whether a waiting delivery of its key became claimable. */
  move(row: MemoryDelivery, state: DeliveryState, now: number): boolean {
    const { key } = row;
    row.queue?.delete(row);
    row.state = state;
    if (key === null) {
      if (state === 'pending') this.#claimable.add(row);
      return false;
    }
    if (key.running === row) key.running = null;
    if (key.next === row) key.next = null;
    if (state === 'running') key.running = row;
    if (state === 'pending') {
      if (key.next !== null && dueBefore(row, key.next)) this.#hold(key);
      (key.waiting ??= new PriorityQueue(dueBefore)).add(row);
    }
    return this.#advance(key, now) && key.next !== row;
  }

  /** Makes the next delivery of the key wait. */
  #hold(key: OrderingKey): void {
    const next = key.next!;
    this.#claimable.delete(next);
    (key.waiting ??= new PriorityQueue(dueBefore)).add(next);
    key.next = null;
  }

  /**
   * Makes the first waiting delivery of the key claimable, unless another one is. While one runs, a due delivery waits, and
   * is due at the end of the other one: deliveries of a busy key do not overtake others.
   */
  #advance(key: OrderingKey, now: number): boolean {
    const first = key.waiting?.first;
    if (first === undefined || key.next !== null) return false;
    if (key.running !== null && first.dueAt <= now) return false;
    key.waiting!.delete(first);
    key.next = first;
    first.dueAt = Math.max(first.dueAt, now);
    this.#claimable.add(first);
    return true;
  }
}

/** Whether no delivery of the ordering key is running, or pending and due. */
export function isFree(key: OrderingKey | null, now: number): boolean {
  return !key?.running && !(key?.next && key.next.dueAt <= now);
}

/** Whether the first delivery has been due for longer than the second. */
const dueBefore = (a: MemoryDelivery, b: MemoryDelivery): boolean =>
  a.dueAt < b.dueAt || (a.dueAt === b.dueAt && a.row.seq < b.row.seq);
