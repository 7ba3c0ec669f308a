import { NO_SUMMARY } from '../../inbox/store/stored-event.js';
import type { StoredSummary } from '../../inbox/store/stored-event.js';
import { HISTORY_LENGTH } from '../../inbox/store/stored-event.js';
import type { HistoryEntry } from '../../inbox/store/stored-event.js';
import type { DeliveryState, IncomingEvent, StoredEvent } from '../../inbox/store/inbox-store.js';
import { PriorityQueue } from './memory-queues.js';

/** One empty array for all rows: most events have no repeats, and most deliveries no history. */
const NONE: readonly never[] = Object.freeze([]);

/** The fields of an incoming event that are stored. */
type ReceivedFields = Omit<IncomingEvent, 'handlers' | 'catalogVersion' | 'assign' | 'fulfils'>;

/** An event in the memory store. */
export class MemoryEvent {
  /** The fields that change only when a redrive makes a stale event count. */
  fixed: Pick<StoredEvent, 'company' | 'id' | 'source' | 'eventType' | 'orderingKey' | 'stale'>;
  /** Milliseconds since the epoch, because a number takes less memory than a `Date`. */
  readonly occurredMs: number;
  /** An event with the same `idKey`, or with the same `onceKey`, is a copy of this event. */
  readonly idKey: string;
  readonly onceKey: string | null;
  /** See `IncomingEvent.reference`. */
  readonly reference: string | null;
  /** `null` in a tombstone, which has the SHA-256 of the body instead. */
  raw: Buffer | null;
  digest: string | null = null;
  headers: StoredEvent['headers'];
  /** Empty in a tombstone, like {@link headers}. */
  summary: StoredSummary;
  repeats: StoredEvent['repeats'] = NONE;
  /** A tombstone keeps its deliveries, because their ordering keys record which events were handled. */
  deliveries: readonly MemoryDelivery[] = NONE;
  /** The time, on the monotonic clock, when the last delivery of the event finished. `null` before. */
  finishedAt: number | null = null;
  /** The index that has the event. It sorts the event by whether all its deliveries have finished. */
  index: { update(row: MemoryEvent, now: number): void } | null = null;
  queue: PriorityQueue<MemoryEvent> | null = null;
  position = 0;
  next: MemoryEvent | null = null;
  previous: MemoryEvent | null = null;

  /** `receivedMs` is on the wall clock, and `receivedAt` on the monotonic clock. `seq` is the order of receipt. */
  constructor(
    event: ReceivedFields,
    readonly receivedMs: number,
    readonly receivedAt: number,
    readonly seq: number,
  ) {
    const { company, id, source, eventType, occurredAt, orderingKey, stale } = event;
    this.fixed = { company, id, source, eventType, orderingKey, stale };
    this.occurredMs = occurredAt.getTime();
    // No company, id or type contains a line break.
    this.idKey = `${company}\n${id}`;
    const isOnce = event.oncePerTransaction && orderingKey !== null;
    this.onceKey = isOnce ? onceKeyOf(company, eventType, orderingKey) : null;
    this.reference = event.reference;
    // A copy: the caller may reuse its buffer.
    this.raw = Buffer.from(event.raw);
    this.headers = { ...event.headers };
    this.summary = event.summary ?? NO_SUMMARY;
  }
}

/** The key of the one event of a type that is stored for a transaction. */
export const onceKeyOf = (company: string, eventType: string, transactionId: string): string =>
  `${company}\n${eventType}\n${transactionId}`;

/** A delivery in the memory store. */
export class MemoryDelivery {
  readonly key: OrderingKey | null;
  state: DeliveryState = 'pending';
  attempts = 0;
  crashes = 0;
  /** Fencing token, and id of the worker, of the last claim. */
  token = 0;
  worker = '';
  /** The times of the last claim and of the end of the delivery, in milliseconds since the epoch. */
  startedAt = 0;
  finishedAt: number | null = null;
  lastError: string | null = null;
  /** The attempts that failed or were lost, and all attempts from before a redrive; see {@link history}. */
  earlier: readonly HistoryEntry[] = NONE;
  queue: PriorityQueue<MemoryDelivery> | null = null;
  position = 0;

  /** @param dueAt when it is due if it is pending, on the monotonic clock. */
  constructor(
    readonly event: MemoryEvent,
    readonly handler: HandlerQueue,
    public dueAt: number,
  ) {
    this.key = handler.joinKey(event);
  }

  /** The attempts that have ended. */
  get history(): readonly HistoryEntry[] {
    if (this.state !== 'done') return this.earlier;
    const { attempts, startedAt, finishedAt } = this;
    const last: HistoryEntry = [attempts, startedAt, finishedAt! - startedAt, 'd'];
    return [...this.earlier.slice(1 - HISTORY_LENGTH), last];
  }
}

/** The deliveries of one company, handler and ordering key. At most one of them runs. */
interface OrderingKey {
  readonly name: string;
  size: number;
  running: MemoryDelivery | null;
  /** `null` before the first pending delivery: most deliveries are assigned on receipt. */
  pending: Set<MemoryDelivery> | null;
  /** The pending deliveries that are due and wait for the running one. */
  waiting: PriorityQueue<MemoryDelivery> | null;
  /** The latest {@link MemoryEvent.occurredMs} of the deliveries that are done. */
  newestDone: number;
}

/** The deliveries of one handler by their state: how many there are, and which is claimed next. */
export class HandlerQueue {
  readonly counts = { pending: 0, running: 0, done: 0, dead: 0, skipped: 0 };
  /** Pending deliveries that may have crashed a process. */
  readonly suspects = new Set<MemoryDelivery>();
  /** All other pending deliveries, except those that wait for their ordering key. */
  readonly #claimable = new PriorityQueue<MemoryDelivery>(dueBefore);
  readonly #keys = new Map<string, OrderingKey>();

  constructor(readonly name: string) {}

  /** When the first delivery becomes claimable, on the monotonic clock; `Infinity` if there is none. */
  get nextDueAt(): number {
    return this.#claimable.first?.dueAt ?? Infinity;
  }

  /** The delivery that became due first and whose ordering key is free. Queues due deliveries of busy keys at their keys. */
  nextDue(now: number): MemoryDelivery | undefined {
    for (let row = this.#claimable.first; row && row.dueAt <= now; row = this.#claimable.first) {
      if (!row.key?.running) return row;
      this.#claimable.delete(row);
      (row.key.waiting ??= new PriorityQueue(dueBefore)).add(row);
    }
    return undefined;
  }

  /** The ordering key of one more delivery; `null` if its event has none. */
  joinKey({ fixed: { company, orderingKey } }: MemoryEvent): OrderingKey | null {
    if (orderingKey === null) return null;
    const name = `${company}\n${orderingKey}`;
    let key = this.#keys.get(name);
    if (key === undefined) {
      key = { name, size: 0, running: null, pending: null, waiting: null, newestDone: -Infinity };
      this.#keys.set(name, key);
    }
    key.size += 1;
    return key;
  }

  add(row: MemoryDelivery, now: number): void {
    const { state, key } = row;
    this.counts[state] += 1;
    if (state === 'running' && key) key.running = row;
    if (state !== 'pending') return;
    if (key) (key.pending ??= new Set()).add(row);
    if (row.crashes > 0) this.suspects.add(row);
    else if (!key?.running || row.dueAt > now) this.#claimable.add(row);
    else (key.waiting ??= new PriorityQueue(dueBefore)).add(row);
  }

  /** Changes the state. Returns whether a waiting delivery of its ordering key became claimable. */
  move(row: MemoryDelivery, state: DeliveryState, now: number): boolean {
    const { key } = row;
    this.counts[row.state] -= 1;
    row.queue?.delete(row);
    this.suspects.delete(row);
    key?.pending?.delete(row);
    if (key?.running === row) key.running = null;
    const isNextDue = key !== null && state !== 'running' && this.#endWait(key, now);
    row.state = state;
    this.add(row, now);
    return isNextDue;
  }

  forget({ state, key }: MemoryDelivery): void {
    this.counts[state] -= 1;
    if (key !== null && (key.size -= 1) === 0) this.#keys.delete(key.name);
  }

  /** Makes the longest waiting delivery claimable, due now, unless a delivery of the key runs. */
  #endWait({ running, waiting }: OrderingKey, now: number): boolean {
    const next = waiting?.first;
    if (next === undefined || running !== null) return false;
    waiting!.delete(next);
    next.dueAt = now;
    this.#claimable.add(next);
    return true;
  }
}

/** Whether no delivery of the ordering key is running, or pending and due. */
export function isFree(key: OrderingKey | null, now: number): boolean {
  for (const { dueAt } of key?.pending ?? []) if (dueAt <= now) return false;
  return !key?.running;
}

/** Whether the first delivery has been due for longer than the second. */
export const dueBefore = (a: MemoryDelivery, b: MemoryDelivery): boolean =>
  a.dueAt < b.dueAt || (a.dueAt === b.dueAt && a.event.seq < b.event.seq);
