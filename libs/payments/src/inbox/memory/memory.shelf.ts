import { PaymentsError } from '../../payments.errors.js';
import type { IncomingEvent } from '../inbox-store.js';
import { digestOf, isFinished, keyOf } from './memory.rows.js';
import type { EventRow } from './memory.rows.js';
import { WaitingLine } from './waiting.line.js';

/** How much a memory inbox keeps; see `MemoryInboxOptions`. */
export interface MemoryLimits {
  readonly maxEvents: number;
  readonly maxBytes: number;
  readonly retentionMs: number;
}

/** The events a memory store keeps, by every key they are found by, within its limits. */
export class MemoryShelf {
  readonly #byId = new Map<string, EventRow>();
  /** Those whose dedupe key is not their id. */
  readonly #byDedupeKey = new Map<string, EventRow>();
  readonly #byOrderingKey = new Map<string, EventRow[]>();
  /** Events with nothing left to do, the longest finished first. */
  readonly #finished = new WaitingLine<EventRow>();
  /** Those of them that still have their body, in the same order: what makes room costs no look at the others. */
  readonly #bodies = new WaitingLine<EventRow>();
  #bytes = 0;
  #finishedBytes = 0;

  constructor(private readonly limits: MemoryLimits) {}

  /** In the order of receipt. */
  all(): IterableIterator<EventRow> {
    return this.#byId.values();
  }

  find(company: string, id: string): EventRow | undefined {
    return this.#byId.get(keyOf(company, id));
  }

  /** The event that this one is a copy of. */
  known({ company, id, dedupeKey }: IncomingEvent): EventRow | undefined {
    const same = this.find(company, id);
    if (same !== undefined) return same;
    if (dedupeKey === id) return this.#byDedupeKey.get(keyOf(company, id));
    const key = keyOf(company, dedupeKey);
    const named = this.#byId.get(key);
    return this.#byDedupeKey.get(key) ?? (named?.dedupeKey === dedupeKey ? named : undefined);
  }

  add(row: EventRow): void {
    const { company, dedupeKey, ordering } = row;
    this.#byId.set(row.key, row);
    if (dedupeKey !== row.id) this.#byDedupeKey.set(keyOf(company, dedupeKey), row);
    if (ordering !== null) {
      row.related = this.#byOrderingKey.get(ordering) ?? null;
      if (row.related === null) this.#byOrderingKey.set(ordering, (row.related = [row]));
      else row.related.push(row);
    }
    this.#bytes += sizeOf(row);
  }

  /** To be called whenever a delivery of the event came to an end, or back from it. */
  update(row: EventRow, nowMs: number): void {
    const finished = row.deliveries.every(isFinished);
    if (finished === (row.finished !== null)) return;
    if (finished) {
      row.finishedAt = nowMs;
      row.finished = this.#finished.join(row);
      if (row.raw !== null) row.body = this.#bodies.join(row);
      this.#finishedBytes += sizeOf(row);
    } else {
      this.#leaveFinished(row);
      this.#leaveBodies(row);
      this.#finishedBytes -= sizeOf(row);
    }
  }

  /**
   * Lets go of finished events until `count` more of `bytes` fit: of bodies first, then of whole events.
   *
   * @throws PaymentsError `inbox_full` where even that is not enough, having let go of nothing.
   */
  makeRoom(count: number, bytes: number): void {
    const unfinished = this.#byId.size - this.#finished.size;
    const kept = this.#bytes - this.#finishedBytes;
    if (unfinished + count > this.limits.maxEvents || kept + bytes > this.limits.maxBytes) {
      throw new PaymentsError(
        'inbox_full',
        'The memory inbox is full of events whose handlers have not finished. Raise "maxEvents" or ' +
          '"maxBytes", look at what holds the handlers up, or keep the inbox in a database.',
      );
    }
    while (this.#bytes + bytes > this.limits.maxBytes) {
      const row = this.#bodies.first!;
      // The tombstone of a dead letter would answer its copies as handled.
      if (row.deliveries.some(({ state }) => state === 'dead')) this.forget(row);
      else this.entomb(row);
    }
    while (this.#byId.size + count > this.limits.maxEvents) this.forget(this.#finished.first!);
  }

  /** Forgets what finished longer ago than the retention. */
  forgetExpired(nowMs: number): void {
    const since = nowMs - this.limits.retentionMs;
    for (;;) {
      const oldest = this.#finished.first;
      if (oldest === undefined || oldest.finishedAt > since) return;
      this.forget(oldest);
    }
  }

  /** Leaves a tombstone of a finished event: enough to know its duplicates. */
  entomb(row: EventRow): void {
    if (row.raw !== null) row.digest = digestOf(row.raw);
    this.#strip(row);
  }

  forget(row: EventRow): void {
    const { company, id, dedupeKey, ordering, related } = row;
    this.#strip(row);
    this.#leaveFinished(row);
    this.#byId.delete(row.key);
    if (dedupeKey !== id) this.#byDedupeKey.delete(keyOf(company, dedupeKey));
    if (related === null) return;
    if (related.length === 1) this.#byOrderingKey.delete(ordering!);
    else related.splice(related.indexOf(row), 1);
  }

  #strip(row: EventRow): void {
    this.#bytes -= sizeOf(row);
    this.#finishedBytes -= sizeOf(row);
    this.#leaveBodies(row);
    row.raw = null;
    row.headers = {};
    row.deliveries = [];
  }

  #leaveFinished(row: EventRow): void {
    if (row.finished !== null) this.#finished.leave(row.finished);
    row.finished = null;
  }

  #leaveBodies(row: EventRow): void {
    if (row.body !== null) this.#bodies.leave(row.body);
    row.body = null;
  }
}

function sizeOf({ raw }: EventRow): number {
  return raw?.byteLength ?? 0;
}
