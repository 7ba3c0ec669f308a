import { TEST_EVENT_TYPE } from '../../events/payment-event.js';
import { PaymentsError } from '../../payments.errors.js';
import type { IncomingEvent } from '../inbox-store.js';
import { Heap } from './heap.js';
import type { MemoryQueue } from './memory-queue.js';
import { digestOf, isFinished, keyOf } from './memory-rows.js';
import type { EventRow } from './memory-rows.js';

/** How much a memory inbox keeps; see `MemoryInboxOptions`. */
export interface MemoryLimits {
  readonly maxEvents: number;
  readonly maxBytes: number;
  readonly retentionMs: number;
}

/** The events of a memory store, within its limits. */
export class MemoryEvents {
  readonly #byId = new Map<string, EventRow>();
  readonly #byOnceKey = new Map<string, EventRow>();
  /** By receipt. */
  readonly #unfinished = new Heap<EventRow>((a, b) => a.seq < b.seq);
  /** By the time they finished; and those of them that still have their body. */
  readonly #finished = new Heap<EventRow>(finishedBefore);
  readonly #bodies = new Heap<EventRow>(finishedBefore);
  /** Events without deliveries, by the reason. */
  readonly undelivered = { unhandled: new Set<EventRow>(), stale: new Set<EventRow>() };
  #bytes = 0;
  #unfinishedBytes = 0;

  constructor(
    private readonly limits: MemoryLimits,
    private readonly queue: MemoryQueue,
  ) {}

  /** In the order of receipt. */
  all(): IterableIterator<EventRow> {
    return this.#byId.values();
  }

  /** The event that was received first of those that have pending or running deliveries. */
  get oldestUnfinished(): EventRow | undefined {
    return this.#unfinished.first;
  }

  find(company: string, id: string): EventRow | undefined {
    return this.#byId.get(keyOf(company, id));
  }

  /** The event that this one is a copy of. */
  known({ company, id, eventType, onceKey }: IncomingEvent): EventRow | undefined {
    const same = this.find(company, id);
    if (same !== undefined || onceKey === null) return same;
    return this.#byOnceKey.get(keyOf(company, eventType, onceKey));
  }

  add(row: EventRow): void {
    this.#byId.set(row.key, row);
    if (row.onceKey !== null) this.#byOnceKey.set(row.onceKey, row);
    this.#bytes += sizeOf(row);
    this.#unfinishedBytes += sizeOf(row);
    this.#unfinished.add(row);
  }

  /** Call it after each change of the event's deliveries. */
  update(row: EventRow, nowMs: number): void {
    const { eventType, stale } = row.fixed;
    const reason = this.undelivered[stale ? 'stale' : 'unhandled'];
    const bare = row.deliveries.length === 0 && row.raw !== null;
    // A test event needs no handler, and a tombstone was handled.
    if (bare && eventType !== TEST_EVENT_TYPE) reason.add(row);
    else reason.delete(row);
    const finished = row.deliveries.every(isFinished);
    if (finished !== this.#unfinished.has(row)) return;
    if (finished) {
      row.finishedAt = nowMs;
      this.#unfinished.delete(row);
      this.#finished.add(row);
      if (row.raw !== null) this.#bodies.add(row);
    } else {
      this.#finished.delete(row);
      this.#bodies.delete(row);
      this.#unfinished.add(row);
    }
    this.#unfinishedBytes += finished ? -sizeOf(row) : sizeOf(row);
  }

  /**
   * Deletes finished events until `count` more with `bytes` fit: first bodies, then whole events.
   *
   * @throws PaymentsError `inbox_full` if that is not enough, having deleted nothing.
   */
  makeRoom(count: number, bytes: number): void {
    const { maxEvents, maxBytes } = this.limits;
    if (this.#unfinished.size + count > maxEvents || this.#unfinishedBytes + bytes > maxBytes) {
      throw new PaymentsError(
        'inbox_full',
        'The memory inbox is full of events whose handlers have not finished. Raise "maxEvents" or ' +
          '"maxBytes", find out what delays the handlers, or keep the inbox in a database.',
      );
    }
    while (this.#bytes + bytes > maxBytes) {
      const row = this.#bodies.first!;
      // With its tombstone, copies of a dead letter would be answered as handled.
      if (row.deliveries.some(({ state }) => state === 'dead')) this.forget(row);
      else this.entomb(row);
    }
    while (this.#byId.size + count > maxEvents) this.forget(this.#finished.first!);
  }

  /** Deletes events that finished longer ago than the retention. */
  forgetExpired(nowMs: number): void {
    const until = nowMs - this.limits.retentionMs;
    for (let row = this.#finished.first; row && row.finishedAt <= until; row = this.#finished.first)
      this.forget(row);
  }

  /** Deletes the body of a finished event. Its deliveries are not shown any more, and its copies are still known. */
  entomb(row: EventRow): void {
    this.#deleteBody(row);
    if (row.raw !== null) row.digest = digestOf(row.raw);
    Object.assign(row, { raw: null, headers: {} });
  }

  forget(row: EventRow): void {
    this.#deleteBody(row);
    for (const delivery of row.deliveries) this.queue.forget(delivery);
    this.#finished.delete(row);
    this.#byId.delete(row.key);
    if (row.onceKey !== null) this.#byOnceKey.delete(row.onceKey);
  }

  #deleteBody(row: EventRow): void {
    this.#bytes -= sizeOf(row);
    this.#bodies.delete(row);
    this.undelivered.unhandled.delete(row);
    this.undelivered.stale.delete(row);
  }
}

function finishedBefore(a: EventRow, b: EventRow): boolean {
  return a.finishedAt < b.finishedAt || (a.finishedAt === b.finishedAt && a.seq < b.seq);
}

function sizeOf({ raw }: EventRow): number {
  return raw?.byteLength ?? 0;
}
