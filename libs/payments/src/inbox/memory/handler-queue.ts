import type { DeliveryState } from '../inbox-store.js';
import type { DeliveryRow, EventRow, OrderingKey } from './memory-rows.js';
import { PriorityQueue } from './priority-queue.js';

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
