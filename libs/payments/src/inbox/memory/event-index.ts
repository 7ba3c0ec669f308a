import { createHash } from 'node:crypto';
import { TEST_EVENT_TYPE } from '../../events/payment-event.js';
import { PaymentsError } from '../../errors/payments-error.js';
import { LinkedList } from './linked-list.js';
import type { EventRow } from './memory-rows.js';
import { PriorityQueue } from './priority-queue.js';

/** How much a memory inbox keeps; see `MemoryInboxOptions`. */
export interface MemoryLimits {
  readonly maxEvents: number;
  readonly maxBytes: number;
  readonly retentionMs: number;
}

/** The events of a memory store, within its limits. */
export class EventIndex {
  readonly #byId = new Map<string, EventRow>();
  readonly #byOnceKey = new Map<string, EventRow>();
  /** Each event is in one of these: in the order of receipt, and the others in the order in which they finished. */
  readonly #unfinished = new PriorityQueue<EventRow>((a, b) => a.seq < b.seq);
  readonly #finished = new LinkedList<EventRow>();
  readonly #tombstones = new LinkedList<EventRow>();
  /** Events without deliveries, by the reason. */
  readonly undelivered = { unhandled: new Set<EventRow>(), stale: new Set<EventRow>() };
  #bytes = 0;
  #unfinishedBytes = 0;

  constructor(private readonly limits: MemoryLimits) {}

  /** In the order of receipt. */
  all(): IterableIterator<EventRow> {
    return this.#byId.values();
  }

  /** The event that was received first of those that have pending or running deliveries. */
  get oldestUnfinished(): EventRow | undefined {
    return this.#unfinished.first;
  }

  find(company: string, id: string): EventRow | undefined {
    return this.#byId.get(`${company}\n${id}`);
  }

  /** The event that this one is a copy of. */
  original({ idKey, onceKey }: EventRow): EventRow | undefined {
    return this.#byId.get(idKey) ?? (onceKey === null ? undefined : this.#byOnceKey.get(onceKey));
  }

  /** Adds an event without deliveries. Call {@link update} once they are added. */
  add(row: EventRow): void {
    this.#byId.set(row.idKey, row);
    if (row.onceKey !== null) this.#byOnceKey.set(row.onceKey, row);
    this.#unfinished.add(row);
    this.#bytes += sizeOf(row);
    this.#unfinishedBytes += sizeOf(row);
  }

  /** Call it after an event got deliveries, and after one of them finished or was reopened. */
  update(row: EventRow, now: number): void {
    const reason = this.undelivered[row.fixed.stale ? 'stale' : 'unhandled'];
    if (row.deliveries.length > 0) reason.delete(row);
    else if (row.fixed.eventType !== TEST_EVENT_TYPE) reason.add(row);
    const finished = row.deliveries.every(
      (one) => one.state !== 'pending' && one.state !== 'running',
    );
    if (finished === (row.finishedAt !== null)) return;
    row.finishedAt = finished ? now : null;
    if (finished) this.#unfinished.delete(row);
    else this.#finished.delete(row);
    (finished ? this.#finished : this.#unfinished).add(row);
    this.#unfinishedBytes += finished ? -sizeOf(row) : sizeOf(row);
  }

  /**
   * Deletes finished events until all others fit the limits: first bodies, then whole events.
   *
   * @throws PaymentsError `inbox_full` if that is not enough, having deleted those that were added and no others.
   */
  makeRoom(added: Iterable<EventRow>): void {
    const { maxEvents, maxBytes } = this.limits;
    if (this.#unfinished.size > maxEvents || this.#unfinishedBytes > maxBytes) {
      for (const row of added) this.forget(row);
      throw new PaymentsError(
        'inbox_full',
        'The memory inbox is full of events whose handlers have not finished. Raise "maxEvents" or ' +
          '"maxBytes", find out what delays the handlers, or keep the inbox in a database.',
      );
    }
    while (this.#bytes > maxBytes) {
      const row = this.#finished.first!;
      // With its tombstone, copies of a dead letter would be answered as handled.
      if (row.deliveries.some(({ state }) => state === 'dead')) this.forget(row);
      else this.entomb(row);
    }
    while (this.#byId.size > maxEvents) this.forget(this.#firstFinished!);
  }

  /** Deletes events that finished longer ago than the retention. */
  forgetExpired(now: number): void {
    const until = now - this.limits.retentionMs;
    for (let row = this.#firstFinished; row && row.finishedAt! <= until; row = this.#firstFinished)
      this.forget(row);
  }

  /** Deletes the body of a finished event. Its deliveries are not shown any more, and its copies are still known. */
  entomb(row: EventRow): void {
    this.#leave(row);
    row.digest = digestOf(row.raw!);
    row.raw = null;
    row.headers = {};
    this.#tombstones.add(row);
  }

  forget(row: EventRow): void {
    this.#leave(row);
    for (const delivery of row.deliveries) delivery.handler.forget(delivery);
    this.#byId.delete(row.idKey);
    if (row.onceKey !== null) this.#byOnceKey.delete(row.onceKey);
  }

  /** The event that finished first. */
  get #firstFinished(): EventRow | null {
    const [a, b] = [this.#tombstones.first, this.#finished.first];
    return a === null || (b !== null && b.finishedAt! < a.finishedAt!) ? b : a;
  }

  #leave(row: EventRow): void {
    if (row.finishedAt === null) {
      this.#unfinished.delete(row);
      this.#unfinishedBytes -= sizeOf(row);
    } else (row.raw === null ? this.#tombstones : this.#finished).delete(row);
    this.#bytes -= sizeOf(row);
    this.undelivered.unhandled.delete(row);
    this.undelivered.stale.delete(row);
  }
}

/** Whether the second event, with the same id, has another body. */
export function conflicts(original: EventRow, { raw }: EventRow): boolean {
  return original.raw ? !original.raw.equals(raw!) : original.digest !== digestOf(raw!);
}

const digestOf = (raw: Buffer): string => createHash('sha256').update(raw).digest('base64');

const sizeOf = ({ raw }: EventRow): number => raw?.byteLength ?? 0;
