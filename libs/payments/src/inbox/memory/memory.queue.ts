import { DueHeap } from './due.heap.js';
import type { DeliveryRow } from './memory.rows.js';

/** An ordering key in use. */
interface KeyInUse {
  /** The one that runs, or that was let go ahead of those that wait. */
  front: DeliveryRow;
  /** What was due meanwhile. */
  waiting: DueHeap | null;
}

/** The deliveries of one handler. */
interface HandlerLine {
  /** Those that are due, or will be. */
  readonly pending: DueHeap;
  /** The ordering keys in use, each together with its company. */
  readonly keys: Map<string, KeyInUse>;
}

/**
 * The memory inbox's deliveries that are not finished: which is next, and which must wait for another. Every
 * operation costs the logarithm of their number, times the deliveries it moves.
 */
export class MemoryQueue {
  /** By handler. */
  readonly #lines = new Map<string, HandlerLine>();
  /** By the end of their leases. */
  readonly #running = new DueHeap();

  /** Takes in a delivery that is due at its `dueAt`. */
  add(row: DeliveryRow): void {
    this.#lineOf(row).pending.push(row);
  }

  /** Takes out a delivery, wherever it stands. What waits for its ordering key goes on. */
  remove(row: DeliveryRow): void {
    if (row.heap === null) return;
    row.heap.remove(row);
    const { ordering } = row.event;
    if (ordering === null) return;
    const { keys } = this.#lineOf(row);
    const key = keys.get(ordering);
    if (key?.front !== row) return;
    const next = key.waiting?.first;
    if (next === undefined) {
      keys.delete(ordering);
      return;
    }
    // The others wait for this one.
    key.waiting!.remove(next);
    key.front = next;
    this.add(next);
  }

  /** Makes the delivery running until `leaseEndsAt`. */
  lease(row: DeliveryRow, leaseEndsAt: number): void {
    row.heap?.remove(row);
    row.dueAt = leaseEndsAt;
    this.#running.push(row);
    const { ordering } = row.event;
    if (ordering === null) return;
    const { keys } = this.#lineOf(row);
    // Where its key is in use, it is by this one, that was let go ahead.
    if (!keys.has(ordering)) keys.set(ordering, { front: row, waiting: null });
  }

  /** Has the lease of a running delivery end at another time. */
  extend(row: DeliveryRow, leaseEndsAt: number): void {
    this.#running.remove(row);
    row.dueAt = leaseEndsAt;
    this.#running.push(row);
  }

  /** The delivery of these handlers that has been due for longest and may run, if any is due. */
  next(handlers: readonly string[], now: number): DeliveryRow | undefined {
    this.#endLeases(now);
    for (;;) {
      const row = this.#first(handlers);
      if (row === undefined || row.dueAt > now) return undefined;
      const { ordering } = row.event;
      const key = ordering === null ? undefined : this.#lineOf(row).keys.get(ordering);
      if (key === undefined || key.front === row) return row;
      row.heap!.remove(row);
      (key.waiting ??= new DueHeap()).push(row);
    }
  }

  /** When the next delivery of these handlers is due, or the lease of one ends; `undefined`: none waits. */
  nextDueAt(handlers: readonly string[]): number | undefined {
    let next = this.#first(handlers)?.dueAt ?? Infinity;
    const { first } = this.#running;
    // Nearly always the lease that ends first is of one of these handlers.
    const leases = first && handlers.includes(first.handler) ? [first] : this.#running;
    for (const row of leases) {
      if (row.dueAt < next && handlers.includes(row.handler)) next = row.dueAt;
    }
    return next === Infinity ? undefined : next;
  }

  #first(handlers: readonly string[]): DeliveryRow | undefined {
    let first: DeliveryRow | undefined;
    for (const handler of handlers) {
      const row = this.#lines.get(handler)?.pending.first;
      if (row === undefined) continue;
      const { dueAt, order } = row;
      if (!first || dueAt < first.dueAt || (dueAt === first.dueAt && order < first.order)) {
        first = row;
      }
    }
    return first;
  }

  #endLeases(now: number): void {
    for (let row = this.#running.first; row && row.dueAt <= now; row = this.#running.first) {
      this.remove(row);
      this.add(row);
    }
  }

  #lineOf({ handler }: DeliveryRow): HandlerLine {
    let line = this.#lines.get(handler);
    if (line === undefined) {
      line = { pending: new DueHeap(), keys: new Map() };
      this.#lines.set(handler, line);
    }
    return line;
  }
}
