import { createHash } from 'node:crypto';
import { PaymentsError } from '../../errors/payments-error.js';
import type { InboxStore } from '../../inbox/store/inbox-store.js';
import { keyOf } from './memory-rows.js';
import type { MemoryEvent } from './memory-rows.js';
import { PriorityQueue } from './priority-queue.js';

const FULL =
  'The memory inbox is full of events whose handlers have not finished. Raise "maxEvents" or ' +
  '"maxBytes", find out what delays the handlers, or keep the inbox in a database.';

/** The body of a tombstone. */
const NO_BODY = Buffer.alloc(0);

/** How many repeats of an event are kept. */
const REPEATS = 20;

/** How much a memory inbox keeps; see `MemoryInboxOptions`. */
export interface MemoryLimits {
  readonly maxEvents: number;
  readonly maxBytes: number;
  readonly retainEventsMs: number;
}

/** The events of a memory store, within its limits. */
export class EventIndex {
  readonly #byId = new Map<string, MemoryEvent>();
  /** The events that are stored once per transaction, by type and transaction. */
  readonly #once = new Map<string, Map<string, MemoryEvent>>();
  // An event whose deliveries have all finished is in one of the next two.
  readonly #finished = new PriorityQueue<MemoryEvent>(finishedBefore);
  readonly #tombstones = new PriorityQueue<MemoryEvent>(finishedBefore);
  /** Until when events were received that are deleted, or whose deliveries are hidden, by the wall clock. */
  deletedMs = -Infinity;
  #unfinished = 0;
  #unfinishedBytes = 0;
  #bytes = 0;

  constructor(private readonly limits: MemoryLimits) {}

  /** All events, in the order of receipt. */
  all(): IterableIterator<MemoryEvent> {
    return this.#byId.values();
  }

  find(company: string, id: string): MemoryEvent | undefined {
    return this.#byId.get(keyOf(company, id));
  }

  /** The event of that type that is stored for the transaction, once per transaction. */
  findOnce(company: string, eventType: string, transactionId: string): MemoryEvent | undefined {
    return this.#once.get(eventType)?.get(keyOf(company, transactionId));
  }

  /** The stored event that the given event is a copy of. */
  original(row: MemoryEvent): MemoryEvent | undefined {
    const original = this.#byId.get(row.idKey);
    if (original !== undefined || !row.isOnce || row.event.stale) return original;
    return this.#once.get(row.event.eventType)?.get(row.transaction!);
  }

  /** Adds an event. Call {@link update} after its deliveries are added. */
  add(row: MemoryEvent): void {
    this.#byId.set(row.idKey, row);
    if (row.isOnce && !row.event.stale) this.#ofType(row).set(row.transaction!, row);
    this.#unfinished += 1;
    this.#unfinishedBytes += sizeOf(row);
    this.#bytes += sizeOf(row);
  }

  /** Makes a stale event the event of its transaction. Returns `false`, and changes nothing, if another event is. */
  refresh(row: MemoryEvent): boolean {
    if (row.isOnce && this.#ofType(row).has(row.transaction!)) return false;
    row.event = { ...row.event, stale: false };
    if (row.isOnce) this.#ofType(row).set(row.transaction!, row);
    return true;
  }

  /** Call it after an event got deliveries, and after one of its deliveries finished or was reopened. */
  update(row: MemoryEvent, now: number): void {
    let open = false;
    for (const delivery of row.deliveries) open ||= delivery.isOpen;
    if (open === (row.finishedAt === null)) return;
    if (open) row.queue!.delete(row);
    row.finishedAt = open ? null : now;
    if (!open) this.#finished.add(row);
    this.#unfinished += open ? 1 : -1;
    this.#unfinishedBytes += open ? sizeOf(row) : -sizeOf(row);
  }

  /**
   * Deletes finished events until all others fit the limits: first bodies, then whole events.
   *
   * @throws PaymentsError `inbox_full` if that is not enough. It has then deleted the rows that were added, and no others.
   */
  makeRoom(rows: readonly MemoryEvent[]): void {
    const { maxEvents, maxBytes } = this.limits;
    if (this.#unfinished > maxEvents || this.#unfinishedBytes > maxBytes) {
      for (const row of rows) if (this.#byId.get(row.idKey) === row) this.forget(row);
      throw new PaymentsError('inbox_full', FULL);
    }
    while (this.#bytes > maxBytes) {
      const row = this.#finished.first!;
      // A tombstone of a dead letter would make its copies look handled.
      if (row.deliveries.some(({ state }) => state === 'dead')) this.forget(row);
      else this.#replaceWithTombstone(row);
    }
    while (this.#byId.size > maxEvents) this.forget(this.#firstFinished!);
  }

  /** Forgets events that finished longer ago than the retention. */
  forgetExpired(now: number): void {
    const until = now - this.limits.retainEventsMs;
    for (let row = this.#firstFinished; row && row.finishedAt! <= until; row = this.#firstFinished)
      this.forget(row);
  }

  /** See `InboxStore.prune`. `now` is on the monotonic clock, `wallMs` on the wall clock. */
  prune(request: Parameters<InboxStore['prune']>[0], now: number, wallMs: number): number {
    const { bodiesMs, tombstonesMs, limit } = request;
    let changed = 0;
    for (const row of this.all()) {
      const age = now - row.receivedAt;
      if (changed === limit || age <= Math.min(bodiesMs, tombstonesMs)) break;
      const isExpired = Math.min(age, wallMs - row.event.occurredAt.getTime()) > tombstonesMs;
      const settled = row.deliveries.every(({ state }) => state === 'done' || state === 'skipped');
      if (!settled || (row.digest !== null && !isExpired)) continue;
      if (isExpired) this.forget(row);
      else this.#replaceWithTombstone(row);
      changed += 1;
    }
    return changed;
  }

  forget(row: MemoryEvent): void {
    this.#remove(row);
    for (const { handler, key } of row.deliveries) handler.leave(key);
    this.#byId.delete(row.idKey);
    if (row.isOnce && !row.event.stale) this.#ofType(row).delete(row.transaction!);
  }

  #ofType({ event: { eventType } }: MemoryEvent): Map<string, MemoryEvent> {
    let events = this.#once.get(eventType);
    if (events === undefined) this.#once.set(eventType, (events = new Map()));
    return events;
  }

  /** Deletes the body of a finished event and hides its deliveries. Copies of the event are still duplicates. */
  #replaceWithTombstone(row: MemoryEvent): void {
    this.#remove(row);
    row.digest = digestOf(row.event.raw);
    row.event = { ...row.event, raw: NO_BODY, headers: {}, summary: null };
    this.#tombstones.add(row);
  }

  /** The event that finished first. */
  get #firstFinished(): MemoryEvent | undefined {
    const [a, b] = [this.#tombstones.first, this.#finished.first];
    return a === undefined || (b !== undefined && finishedBefore(b, a)) ? b : a;
  }

  /** Removes an event from its queue and from all counts. */
  #remove(row: MemoryEvent): void {
    if (row.finishedAt === null) {
      this.#unfinished -= 1;
      this.#unfinishedBytes -= sizeOf(row);
    } else {
      row.queue!.delete(row);
      this.deletedMs = Math.max(this.deletedMs, row.receivedMs);
    }
    this.#bytes -= sizeOf(row);
  }
}

/** Adds a copy with another id to the repeats of the original event. Returns the outcome of the copy's receipt. */
export function addCopy(original: MemoryEvent, copy: MemoryEvent): 'duplicate' | 'conflict' {
  const { id, raw } = copy.event;
  if (id === original.event.id) {
    const { digest, event } = original;
    const isSame = digest === null ? event.raw.equals(raw) : digest === digestOf(raw);
    return isSame ? 'duplicate' : 'conflict';
  }
  if (!original.repeats.some((repeat) => repeat.id === id)) {
    const repeat = { id, receivedAt: new Date(copy.receivedMs) };
    original.repeats = [...original.repeats, repeat].slice(-REPEATS);
  }
  return 'duplicate';
}

/** Whether the first event finished before the second. */
const finishedBefore = (a: MemoryEvent, b: MemoryEvent): boolean =>
  a.finishedAt! < b.finishedAt! || (a.finishedAt === b.finishedAt && a.seq < b.seq);

const digestOf = (raw: Buffer): string => createHash('sha256').update(raw).digest('base64');

const sizeOf = ({ event }: MemoryEvent): number => event.raw.byteLength;
