import { PaymentsError } from '../payments.errors.js';
import type { EventRow } from './memory.rows.js';

/** The limits of the memory inbox; see `MemoryInboxOptions`. */
export interface MemoryLimits {
  readonly maxEvents: number;
  readonly maxBytes: number;
  readonly retentionMs: number;
}

/**
 * The memory inbox's events, and what of them is let go. Every operation costs as much as the events it lets
 * go, however many there are.
 */
export class MemoryShelf {
  readonly #byDedupeKey = new Map<string, EventRow>();
  readonly #byId = new Map<string, EventRow>();
  /** Events without an unfinished delivery, the longest finished first. */
  readonly #finished = new Set<EventRow>();
  /** Those of them that still have their body, in the same order. */
  readonly #bodies = new Set<EventRow>();
  #bytes = 0;
  #finishedBytes = 0;

  constructor(private readonly limits: MemoryLimits) {}

  /** The event that has this dedupe key or, under whatever key, this id. */
  known(company: string, dedupeKey: string, id: string): EventRow | undefined {
    return this.#byDedupeKey.get(keyOf(company, dedupeKey)) ?? this.find(company, id);
  }

  find(company: string, id: string): EventRow | undefined {
    return this.#byId.get(keyOf(company, id));
  }

  /** Takes in an event that is unfinished. Room for it was made before. */
  add(row: EventRow): void {
    this.#byId.set(keyOf(row.company, row.id), row);
    this.#byDedupeKey.set(keyOf(row.company, row.dedupeKey), row);
    this.#bytes += sizeOf(row);
  }

  /** From now on the event may be let go. */
  finish(row: EventRow, now: number): void {
    row.finishedAt = now;
    this.#finished.add(row);
    if (row.raw === null) return;
    this.#bodies.add(row);
    this.#finishedBytes += sizeOf(row);
  }

  /** The event is to run again, so it may not be let go. */
  reopen(row: EventRow): void {
    this.#finished.delete(row);
    if (this.#bodies.delete(row)) this.#finishedBytes -= sizeOf(row);
  }

  /** Gives a finished event the body back that was let go. */
  restore(row: EventRow, raw: Buffer): void {
    if (row.raw !== null || !this.#finished.has(row)) return;
    row.raw = raw;
    this.#bodies.add(row);
    this.#bytes += sizeOf(row);
    this.#finishedBytes += sizeOf(row);
  }

  /** Forgets what finished longer ago than the retention. */
  forgetExpired(now: number): void {
    for (const row of this.#finished) {
      if (row.finishedAt > now - this.limits.retentionMs) break;
      this.#forget(row);
    }
  }

  /**
   * Lets go of finished events, the longest finished first, until as many events and bytes fit in beside the
   * rest: of bodies first, then of whole tombstones.
   *
   * @throws PaymentsError `inbox_full`, having let go of nothing.
   */
  makeRoom(events: number, bytes: number): void {
    const { maxEvents, maxBytes } = this.limits;
    const unfinished = this.#byId.size - this.#finished.size;
    if (unfinished + events > maxEvents || this.#bytes - this.#finishedBytes + bytes > maxBytes) {
      throw new PaymentsError(
        'inbox_full',
        'The memory inbox is full of events whose handlers have not finished. Raise "maxEvents" or ' +
          '"maxBytes", look at what holds the handlers up, or keep the inbox in a database.',
      );
    }
    for (const row of this.#bodies) {
      if (this.#bytes + bytes <= maxBytes) break;
      this.#dropBody(row);
    }
    for (const row of this.#finished) {
      if (this.#byId.size + events <= maxEvents) break;
      this.#forget(row);
    }
  }

  #forget(row: EventRow): void {
    this.#dropBody(row);
    this.#finished.delete(row);
    this.#byId.delete(keyOf(row.company, row.id));
    this.#byDedupeKey.delete(keyOf(row.company, row.dedupeKey));
  }

  #dropBody(row: EventRow): void {
    if (!this.#bodies.delete(row)) return;
    this.#bytes -= sizeOf(row);
    this.#finishedBytes -= sizeOf(row);
    row.raw = null;
  }
}

function keyOf(company: string, key: string): string {
  // A company's id holds no line break, so no two pairs make one key.
  return `${company}\n${key}`;
}

function sizeOf({ raw }: EventRow): number {
  return raw?.byteLength ?? 0;
}
