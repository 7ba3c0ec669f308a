import { COUNT_CAP } from '../inbox-records.js';
import type { DeliveryState, InboxStats } from '../inbox-store.js';
import { Heap } from './heap.js';
import { keyOf } from './memory-rows.js';
import type { DeliveryRow, EventRow, Lane } from './memory-rows.js';

/** The deliveries of a memory store by their state: which are due, held, suspects or running, and how many there are. */
export class MemoryQueue {
  /** Pending deliveries that are neither held nor suspects, by handler. */
  readonly #due = new Map<string, Heap<DeliveryRow>>();
  readonly #suspects = new Set<DeliveryRow>();
  readonly #lanes = new Map<string, Lane>();
  /** By the id of their worker. */
  readonly running = new Map<string, Set<DeliveryRow>>();
  /** By state and handler. */
  readonly #counts = new Map<string, { handler: string; state: DeliveryState; count: number }>();

  /** Adds the delivery to those of its state. */
  enter(row: DeliveryRow, held = false): void {
    const { lane, handler, state, worker } = row;
    this.#count(row, 1);
    if (state === 'running') {
      this.running.set(worker!, (this.running.get(worker!) ?? new Set()).add(row));
      if (lane) lane.running = row;
    } else if (state === 'pending') {
      lane?.pending.add(row);
      if (!this.#due.has(handler)) this.#due.set(handler, new Heap(dueBefore));
      if (held) lane!.held.add(row);
      else if (row.crashes > 0) this.#suspects.add(row);
      else this.#due.get(handler)!.add(row);
    }
  }

  /** Removes the delivery from those of its state. */
  leave(row: DeliveryRow): void {
    const { lane, handler, worker } = row;
    this.#count(row, -1);
    if (row.state === 'running') {
      const others = this.running.get(worker!)!;
      others.delete(row);
      if (others.size === 0) this.running.delete(worker!);
      if (lane) lane.running = null;
      row.worker = null;
    } else if (row.state === 'pending') {
      lane?.pending.delete(row);
      for (const rows of [this.#due.get(handler), this.#suspects, lane?.held]) rows?.delete(row);
    }
  }

  /** The longest due delivery of the handler whose ordering key is not running. It holds those before it. */
  nextDue(handler: string, now: number): DeliveryRow | undefined {
    const due = this.#due.get(handler);
    for (let row = due?.first; row && row.dueAt <= now; row = due!.first) {
      if (!row.lane?.running) return row;
      due!.delete(row);
      row.lane.held.add(row);
    }
    return undefined;
  }

  nextSuspect(handlers: readonly string[], alone: boolean, now: number): DeliveryRow | undefined {
    const ready = [...this.#suspects].filter(
      ({ handler, crashes, lane, dueAt }) =>
        handlers.includes(handler) && (alone || crashes === 1) && !lane?.running && dueAt <= now,
    );
    return ready.toSorted((a, b) => (dueBefore(a, b) ? -1 : 1))[0];
  }

  hasSuspects(handlers: readonly string[]): boolean {
    return [...this.#suspects].some(({ handler }) => handlers.includes(handler));
  }

  /** Makes the longest due of the held deliveries claimable, due now, unless one of them runs. */
  releaseHeld(lane: Lane | null, now: number): boolean {
    const next = lane?.held.first;
    if (next === undefined || lane!.running !== null) return false;
    this.leave(next);
    next.dueAt = now;
    this.enter(next);
    return true;
  }

  /** When the next delivery of these handlers is due; `Infinity` if there is none. */
  nextDueAt(handlers: readonly string[]): number {
    return Math.min(...handlers.map((name) => this.#due.get(name)?.first?.dueAt ?? Infinity));
  }

  /** Whether no delivery of the event's ordering key and this handler is running, held, or pending and due. */
  isFree({ fixed: { company, orderingKey } }: EventRow, handler: string, now: number): boolean {
    const lane = this.#lanes.get(keyOf(company, handler, orderingKey ?? ''));
    if (orderingKey === null || lane === undefined) return true;
    for (const { dueAt } of lane.pending) if (dueAt <= now) return false;
    return lane.running === null;
  }

  /** The lane of one more delivery. */
  joinLane({ fixed: { company, orderingKey } }: EventRow, handler: string): Lane | null {
    if (orderingKey === null) return null;
    const key = keyOf(company, handler, orderingKey);
    let lane = this.#lanes.get(key);
    if (lane === undefined) {
      const held = new Heap(dueBefore);
      lane = { key, size: 0, running: null, pending: new Set(), held, newestDone: -Infinity };
      this.#lanes.set(key, lane);
    }
    lane.size += 1;
    return lane;
  }

  /** Forgets a finished delivery. */
  forget(row: DeliveryRow): void {
    this.#count(row, -1);
    if (row.lane !== null && (row.lane.size -= 1) === 0) this.#lanes.delete(row.lane.key);
  }

  /** Counts of what is not done or skipped. */
  counts(): InboxStats['deliveries'] {
    return [...this.#counts.values()].flatMap(({ handler, state, count }) =>
      count === 0 || state === 'done' || state === 'skipped'
        ? []
        : [{ handler, state, count: Math.min(count, COUNT_CAP), more: count > COUNT_CAP }],
    );
  }

  #count({ handler, state }: DeliveryRow, by: number): void {
    const key = keyOf(state, handler);
    const counted = this.#counts.get(key) ?? { handler, state, count: 0 };
    counted.count += by;
    this.#counts.set(key, counted);
  }
}

function dueBefore(a: DeliveryRow, b: DeliveryRow): boolean {
  return a.dueAt < b.dueAt || (a.dueAt === b.dueAt && a.event.seq < b.event.seq);
}
