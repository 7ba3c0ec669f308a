import { DueHeap } from './due.heap.js';
import type { DeliveryRow } from './memory.rows.js';

/**
 * The memory inbox's deliveries that are not finished: which is next, and which must wait for another. Every
 * operation costs the logarithm of their number, times the deliveries it moves.
 */
export class MemoryQueue {
  /** By handler: those that are due, or will be. */
  readonly #pending = new Map<string, DueHeap>();
  /** Those that were due while another of their ordering key ran, by that key. */
  readonly #parked = new Map<string, DueHeap>();
  readonly #running = new Set<DeliveryRow>();
  /** The ordering keys of those. */
  readonly #busy = new Set<string>();

  /** Takes in a delivery that is due at its `dueAt`. */
  add(row: DeliveryRow): void {
    heapOf(this.#pending, row.handler).push(row);
  }

  /** Takes out a delivery, wherever it stands. */
  remove(row: DeliveryRow): void {
    if (this.#running.delete(row)) this.#release(row.exclusion);
    this.#pending.get(row.handler)?.remove(row);
    if (row.exclusion !== null) this.#parked.get(row.exclusion)?.remove(row);
  }

  /** Makes the delivery running until `leaseEndsAt`. */
  lease(row: DeliveryRow, leaseEndsAt: number): void {
    this.remove(row);
    row.dueAt = leaseEndsAt;
    this.#running.add(row);
    if (row.exclusion !== null) this.#busy.add(row.exclusion);
  }

  /** The delivery of these handlers that has been due for longest and may run, if any is due. */
  next(handlers: readonly string[], now: number): DeliveryRow | undefined {
    this.#endLeases(now);
    for (;;) {
      const row = this.#first(handlers);
      if (row === undefined || row.dueAt > now) return undefined;
      if (row.exclusion === null || !this.#busy.has(row.exclusion)) return row;
      this.#pending.get(row.handler)!.remove(row);
      heapOf(this.#parked, row.exclusion).push(row);
    }
  }

  /** When the next delivery of these handlers is due, or the lease of one ends; `undefined`: none waits. */
  nextDueAt(handlers: readonly string[]): number | undefined {
    let next = this.#first(handlers)?.dueAt ?? Infinity;
    for (const row of this.#running) {
      if (handlers.includes(row.handler)) next = Math.min(next, row.dueAt);
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
    for (const row of this.#running) {
      if (row.dueAt > now) continue;
      this.remove(row);
      this.add(row);
    }
  }

  /** Frees an ordering key. One that waited for it goes on; the others wait for that one. */
  #release(exclusion: string | null): void {
    if (exclusion === null) return;
    this.#busy.delete(exclusion);
    const parked = this.#parked.get(exclusion);
    const row = parked?.first;
    if (row === undefined) {
      this.#parked.delete(exclusion);
      return;
    }
    parked!.remove(row);
    this.add(row);
  }
}

function heapOf(heaps: Map<string, DueHeap>, key: string): DueHeap {
  let heap = heaps.get(key);
  if (heap === undefined) heaps.set(key, (heap = new DueHeap()));
  return heap;
}
