import { HISTORY_LENGTH } from '../delivery-history.js';
import type { HistoryEntry } from '../delivery-history.js';
import type { DeliveryState, IncomingEvent, StoredEvent } from '../inbox-store.js';
import type { Linked } from './linked-list.js';
import { PriorityQueue } from './priority-queue.js';
import type { Queued } from './priority-queue.js';

/** The rows share it: most have no repeats, and no history before their first attempt. */
const NONE: readonly never[] = Object.freeze([]);

/** An event in the memory store. */
export class EventRow implements Queued<EventRow>, Linked<EventRow> {
  /** What never changes. */
  readonly fixed: Pick<StoredEvent, 'company' | 'id' | 'eventType' | 'orderingKey' | 'stale'>;
  /** In milliseconds since the epoch: a number takes less memory than a `Date`. */
  readonly occurredMs: number;
  /** The two keys that copies of it have. */
  readonly idKey: string;
  readonly onceKey: string | null;
  /** `null` in a tombstone, which has the SHA-256 of the body instead. */
  raw: Buffer | null;
  digest: string | null = null;
  headers: StoredEvent['headers'];
  repeats: StoredEvent['repeats'] = NONE;
  /** A tombstone keeps them, because their ordering keys know what was done. */
  deliveries: readonly DeliveryRow[] = NONE;
  /** When its last delivery finished, on the monotonic clock. `null` before. */
  finishedAt: number | null = null;
  queue: PriorityQueue<EventRow> | null = null;
  position = 0;
  next: EventRow | null = null;
  previous: EventRow | null = null;

  /**
   * @param seq numbers events in the order of receipt.
   * @param since the time of receipt on the monotonic clock.
   */
  constructor(
    event: IncomingEvent,
    readonly receivedMs: number,
    readonly since: number,
    readonly seq: number,
  ) {
    const { company, id, eventType, occurredAt, orderingKey, onceKey, stale } = event;
    this.fixed = { company, id, eventType, orderingKey, stale };
    this.occurredMs = occurredAt.getTime();
    // No company, id or type contains a line break.
    this.idKey = `${company}\n${id}`;
    this.onceKey = onceKey === null ? null : `${company}\n${eventType}\n${onceKey}`;
    // A copy: the caller may reuse its buffer.
    this.raw = Buffer.from(event.raw);
    this.headers = { ...event.headers };
  }
}

/** A delivery in the memory store. */
export class DeliveryRow implements Queued<DeliveryRow> {
  readonly key: OrderingKey | null;
  state: DeliveryState = 'pending';
  attempts = 0;
  crashes = 0;
  alone = false;
  /** Fencing token, and id of the worker. They are of the last claim. */
  token = 0;
  worker = '';
  /** When it was last claimed, and when it finished, in milliseconds since the epoch. */
  startedAt = 0;
  finishedAt: number | null = null;
  lastError: string | null = null;
  /** The attempts that ended without success, and those before a redrive; see {@link historyOf}. */
  earlier: readonly HistoryEntry[] = NONE;
  queue: PriorityQueue<DeliveryRow> | null = null;
  position = 0;

  /** @param dueAt when it is due if it is pending, on the monotonic clock. */
  constructor(
    readonly event: EventRow,
    readonly handler: HandlerQueue,
    public dueAt: number,
  ) {
    this.key = handler.joinKey(event);
  }
}

/** The attempts of a delivery that have ended. */
export function historyOf(row: DeliveryRow): readonly HistoryEntry[] {
  const { state, attempts, startedAt, finishedAt } = row;
  return state === 'done'
    ? [
        ...row.earlier.slice(1 - HISTORY_LENGTH),
        [attempts, startedAt, finishedAt! - startedAt, 'd'],
      ]
    : row.earlier;
}

/** The deliveries of one company, handler and ordering key. At most one of them runs. */
export interface OrderingKey {
  readonly name: string;
  /** How many deliveries are stored. */
  size: number;
  running: DeliveryRow | null;
  /** `null` before the first one: most deliveries are assigned on receipt. */
  pending: Set<DeliveryRow> | null;
  /** The pending ones that are due and wait for the running one. */
  held: PriorityQueue<DeliveryRow> | null;
  /** The latest {@link EventRow.occurredMs} of those that are done. */
  newestDone: number;
}

/** The deliveries of one handler by their state: how many there are, and which is claimed next. */
export class HandlerQueue {
  readonly counts = { pending: 0, running: 0, done: 0, dead: 0, skipped: 0 };
  /** Pending deliveries that a process may have died of. */
  readonly suspects = new Set<DeliveryRow>();
  /** All other pending deliveries that are not held. */
  readonly #unheld = new PriorityQueue<DeliveryRow>(dueBefore);
  readonly #keys = new Map<string, OrderingKey>();

  constructor(readonly name: string) {}

  /** When the first delivery becomes claimable, on the monotonic clock; `Infinity` if there is none. */
  get nextDueAt(): number {
    return this.#unheld.first?.dueAt ?? Infinity;
  }

  /** The longest due delivery whose ordering key is not running. It holds those before it. */
  nextDue(now: number): DeliveryRow | undefined {
    for (let row = this.#unheld.first; row && row.dueAt <= now; row = this.#unheld.first) {
      if (!row.key?.running) return row;
      this.#unheld.delete(row);
      hold(row, row.key);
    }
    return undefined;
  }

  /** The ordering key of one more delivery; `null` if its event has none. */
  joinKey({ fixed: { company, orderingKey } }: EventRow): OrderingKey | null {
    if (orderingKey === null) return null;
    const name = `${company}\n${orderingKey}`;
    let key = this.#keys.get(name);
    if (key === undefined) {
      key = { name, size: 0, running: null, pending: null, held: null, newestDone: -Infinity };
      this.#keys.set(name, key);
    }
    key.size += 1;
    return key;
  }

  /** Adds a delivery to those of its state. */
  add(row: DeliveryRow, now: number): void {
    const { state, key } = row;
    this.counts[state] += 1;
    if (state === 'running' && key) key.running = row;
    if (state !== 'pending') return;
    if (key) (key.pending ??= new Set()).add(row);
    if (row.crashes > 0) this.suspects.add(row);
    else if (key?.running && row.dueAt <= now) hold(row, key);
    else this.#unheld.add(row);
  }

  /** Changes the state of a delivery. Returns whether a held one of its ordering key became claimable. */
  move(row: DeliveryRow, state: DeliveryState, now: number): boolean {
    const { key } = row;
    this.counts[row.state] -= 1;
    row.queue?.delete(row);
    this.suspects.delete(row);
    key?.pending?.delete(row);
    if (key?.running === row) key.running = null;
    const isNextDue = key !== null && state !== 'running' && this.#releaseHeld(key, now);
    row.state = state;
    this.add(row, now);
    return isNextDue;
  }

  /** Forgets a finished delivery. */
  forget({ state, key }: DeliveryRow): void {
    this.counts[state] -= 1;
    if (key === null) return;
    key.size -= 1;
    if (key.size === 0) this.#keys.delete(key.name);
  }

  /** Makes the longest due of the held deliveries claimable, due now, unless one of them runs. */
  #releaseHeld({ running, held }: OrderingKey, now: number): boolean {
    const next = held?.first;
    if (next === undefined || running !== null) return false;
    held!.delete(next);
    next.dueAt = now;
    this.#unheld.add(next);
    return true;
  }
}

function hold(row: DeliveryRow, key: OrderingKey): void {
  (key.held ??= new PriorityQueue(dueBefore)).add(row);
}

/** Whether no delivery of the ordering key is running, or pending and due. */
export function isFree(key: OrderingKey | null, now: number): boolean {
  if (key === null) return true;
  if (key.running) return false;
  for (const { dueAt } of key.pending ?? []) if (dueAt <= now) return false;
  return true;
}

/** Whether the first delivery has been due for longer than the second. */
export function dueBefore(a: DeliveryRow, b: DeliveryRow): boolean {
  return a.dueAt < b.dueAt || (a.dueAt === b.dueAt && a.event.seq < b.event.seq);
}
