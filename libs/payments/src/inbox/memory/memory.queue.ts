import { DueHeap } from './due.heap.js';
import type { DeliveryRow } from './memory.rows.js';

/** An ordering key in use. */
interface KeyInUse {
  /** The one that runs, or that was let go ahead of those that wait. */
  front: DeliveryRow;
  /** What was due meanwhile. */
  waiting: DueHeap | null;
}

/**
 * The memory inbox's deliveries that are not finished: which is next, and which must wait for another. Every
 * operation costs the logarithm of their number, times the deliveries it moves.
 */
export class MemoryQueue {
  /** By handler: those that are due, or will be. */
  readonly #pending = new Map<string, DueHeap>();
  /** By the end of their leases. */
  readonly #running = new DueHeap();
  readonly #keys = new Map<string, KeyInUse>();

  /** Takes in a delivery that is due at its `dueAt`. */
  add(row: DeliveryRow): void {
    let heap = this.#pending.get(row.handler);
    if (heap === undefined) this.#pending.set(row.handler, (heap = new DueHeap()));
    heap.push(row);
  }

  /** Takes out a delivery, wherever it stands. What waits for its ordering key goes on. */
  remove(row: DeliveryRow): void {
    if (row.heap === null) return;
    row.heap.remove(row);
    const key = row.exclusion === null ? undefined : this.#keys.get(row.exclusion);
    if (key?.front === row) this.#letGoOn(row.exclusion!, key);
  }

  /** Makes the delivery running until `leaseEndsAt`. */
  lease(row: DeliveryRow, leaseEndsAt: number): void {
    row.heap?.remove(row);
    row.dueAt = leaseEndsAt;
    this.#running.push(row);
    if (row.exclusion === null) return;
    const key = this.#keys.get(row.exclusion);
    if (key === undefined) this.#keys.set(row.exclusion, { front: row, waiting: null });
    else key.front = row;
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
      const key = row.exclusion === null ? undefined : this.#keys.get(row.exclusion);
      if (key === undefined || key.front === row) return row;
      row.heap!.remove(row);
      (key.waiting ??= new DueHeap()).push(row);
    }
  }

  /** When the next delivery of these handlers is due, or the lease of one ends; `undefined`: none waits. */
  nextDueAt(handlers: readonly string[]): number | undefined {
    let next = this.#first(handlers)?.dueAt ?? Infinity;
    for (const row of this.#running) {
      if (row.dueAt < next && handlers.includes(row.handler)) next = row.dueAt;
    }
    return next === Infinity ? undefined : next;
  }

  #first(handlers: readonly string[]): DeliveryRow | undefined {
    let first: DeliveryRow | undefined;
    for (const handler of handlers) {
      const row = this.#pending.get(handler)?.first;
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

  /** Of those that wait for a key one goes on, and the others wait for that one. */
  #letGoOn(exclusion: string, key: KeyInUse): void {
    const next = key.waiting?.first;
    if (next === undefined) {
      this.#keys.delete(exclusion);
      return;
    }
    key.waiting!.remove(next);
    key.front = next;
    this.add(next);
  }
}
