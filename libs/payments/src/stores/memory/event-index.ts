import { createHash } from 'node:crypto';
import { TEST_EVENT_TYPE } from '../../events/payment-event.js';
import { PaymentsError } from '../../errors/payments-error.js';
import type { InboxStore } from '../../inbox/store/inbox-store.js';
import { NO_SUMMARY } from '../../inbox/store/stored-event.js';
import { LinkedList, PriorityQueue } from './memory-queues.js';
import { onceKeyOf } from './memory-rows.js';
import type { MemoryEvent } from './memory-rows.js';

const FULL =
  'The memory inbox is full of events whose handlers have not finished. Raise "maxEvents" or ' +
  '"maxBytes", find out what delays the handlers, or keep the inbox in a database.';

/** How many repeats of an event are kept. */
const REPEATS = 20;

/** How much a memory inbox keeps; see `MemoryInboxOptions`. */
export interface MemoryLimits {
  readonly maxEvents: number;
  readonly maxBytes: number;
  readonly retentionMs: number;
}

/** The events of a memory store, within its limits. */
export class EventIndex {
  readonly #byId = new Map<string, MemoryEvent>();
  readonly #byOnceKey = new Map<string, MemoryEvent>();
  // Each event is in one of the next three: unfinished events in the order of receipt, others in the order of finishing.
  readonly #unfinished = new PriorityQueue<MemoryEvent>((a, b) => a.seq < b.seq);
  readonly #finished = new LinkedList<MemoryEvent>();
  readonly #tombstones = new LinkedList<MemoryEvent>();
  /** Events without deliveries, by the reason. */
  readonly undelivered = { unhandled: new Set<MemoryEvent>(), stale: new Set<MemoryEvent>() };
  /** Until when events were received that are deleted, or whose deliveries are hidden, by the wall clock. */
  deletedMs = -Infinity;
  #bytes = 0;
  #unfinishedBytes = 0;

  constructor(private readonly limits: MemoryLimits) {}

  /** All events, in the order of receipt. */
  all(): IterableIterator<MemoryEvent> {
    return this.#byId.values();
  }

  /** The event that was received first of the events with pending or running deliveries. */
  get oldestUnfinished(): MemoryEvent | undefined {
    return this.#unfinished.first;
  }

  find(company: string, id: string): MemoryEvent | undefined {
    return this.#byId.get(`${company}\n${id}`);
  }

  /** The stored event that the given event is a copy of. */
  original({ idKey, onceKey, fixed }: MemoryEvent): MemoryEvent | undefined {
    const isOnce = onceKey !== null && !fixed.stale;
    return this.#byId.get(idKey) ?? (isOnce ? this.#byOnceKey.get(onceKey) : undefined);
  }

  /** Makes a stale event not stale, and gives it its once key. Returns `false` if another event has the key. */
  refresh(row: MemoryEvent): boolean {
    if (row.onceKey !== null && this.#byOnceKey.has(row.onceKey)) return false;
    this.undelivered.stale.delete(row);
    row.fixed = { ...row.fixed, stale: false };
    if (row.onceKey !== null) this.#byOnceKey.set(row.onceKey, row);
    return true;
  }

  /** The event of that type that is stored for the transaction, once per transaction. */
  findOnce(company: string, eventType: string, transactionId: string): MemoryEvent | undefined {
    return this.#byOnceKey.get(onceKeyOf(company, eventType, transactionId));
  }

  /** Adds an event without deliveries. Call {@link update} after its deliveries are added. */
  add(row: MemoryEvent): void {
    row.index = this;
    this.#byId.set(row.idKey, row);
    if (row.onceKey !== null && !row.fixed.stale) this.#byOnceKey.set(row.onceKey, row);
    this.#unfinished.add(row);
    this.#bytes += sizeOf(row);
    this.#unfinishedBytes += sizeOf(row);
  }

  /** Call it after an event got deliveries, and after one of its deliveries finished or was reopened. */
  update(row: MemoryEvent, now: number): void {
    const reason = this.undelivered[row.fixed.stale ? 'stale' : 'unhandled'];
    if (row.deliveries.length > 0) reason.delete(row);
    else if (row.fixed.eventType !== TEST_EVENT_TYPE) reason.add(row);
    const finished = row.deliveries.every(
      ({ state }) => state !== 'pending' && state !== 'running',
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
   * @throws PaymentsError `inbox_full` if that is not enough. It has then deleted the added events, and no others.
   */
  makeRoom(added: Iterable<MemoryEvent>): void {
    const { maxEvents, maxBytes } = this.limits;
    if (this.#unfinished.size > maxEvents || this.#unfinishedBytes > maxBytes) {
      for (const row of added) this.forget(row);
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
    const until = now - this.limits.retentionMs;
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
      const isExpired = Math.min(age, wallMs - row.occurredMs) > tombstonesMs;
      const settled = row.deliveries.every(({ state }) => state === 'done' || state === 'skipped');
      if (!settled || (row.raw === null && !isExpired)) continue;
      if (isExpired) this.forget(row);
      else this.#replaceWithTombstone(row);
      changed += 1;
    }
    return changed;
  }

  forget(row: MemoryEvent): void {
    this.#remove(row);
    for (const delivery of row.deliveries) delivery.handler.forget(delivery);
    this.#byId.delete(row.idKey);
    const { onceKey } = row;
    if (onceKey !== null && this.#byOnceKey.get(onceKey) === row) this.#byOnceKey.delete(onceKey);
  }

  /** Deletes the body of a finished event and hides its deliveries. Copies of the event are still duplicates. */
  #replaceWithTombstone(row: MemoryEvent): void {
    this.#remove(row);
    row.digest = digestOf(row.raw!);
    row.raw = null;
    row.headers = {};
    row.summary = NO_SUMMARY;
    this.#tombstones.add(row);
  }

  /** The event that finished first. */
  get #firstFinished(): MemoryEvent | null {
    const [a, b] = [this.#tombstones.first, this.#finished.first];
    return a === null || (b !== null && b.finishedAt! < a.finishedAt!) ? b : a;
  }

  /** Removes an event from its queue or list, and from all counts. */
  #remove(row: MemoryEvent): void {
    if (row.finishedAt === null) {
      this.#unfinished.delete(row);
      this.#unfinishedBytes -= sizeOf(row);
    } else {
      (row.raw === null ? this.#tombstones : this.#finished).delete(row);
      this.deletedMs = Math.max(this.deletedMs, row.receivedMs);
    }
    this.#bytes -= sizeOf(row);
    this.undelivered.unhandled.delete(row);
    this.undelivered.stale.delete(row);
  }
}

/** Adds a copy with another id to the repeats of the original event. Returns the outcome of the copy's receipt. */
export function addCopy(original: MemoryEvent, copy: MemoryEvent): 'duplicate' | 'conflict' {
  const { id } = copy.fixed;
  if (id === original.fixed.id) {
    const raw = copy.raw!;
    const isSame = original.raw?.equals(raw) ?? original.digest === digestOf(raw);
    return isSame ? 'duplicate' : 'conflict';
  }
  if (!original.repeats.some((repeat) => repeat.id === id)) {
    const repeat = { id, receivedAt: new Date(copy.receivedMs) };
    original.repeats = [...original.repeats, repeat].slice(-REPEATS);
  }
  return 'duplicate';
}

const digestOf = (raw: Buffer): string => createHash('sha256').update(raw).digest('base64');

const sizeOf = ({ raw }: MemoryEvent): number => raw?.byteLength ?? 0;
