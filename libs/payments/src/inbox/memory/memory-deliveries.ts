import type { PaymentsRuntime } from '../../payments.runtime.js';
import { boundedError, HISTORY_LENGTH } from '../delivery-history.js';
import { COUNT_CAP } from '../inbox-records.js';
import type {
  ClaimedDelivery,
  DeliveryAttempt,
  DeliveryState,
  InboxStats,
  Lease,
  Settlement,
} from '../inbox-store.js';
import { Heap } from './heap.js';
import type { MemoryEvents } from './memory-events.js';
import { keyOf } from './memory-rows.js';
import type { DeliveryRow, EventRow, Lane } from './memory-rows.js';

/** The deliveries of a memory store: their states, and which is the next to run. */
export class MemoryDeliveries {
  /** What {@link claim} reads: pending deliveries that are neither held nor suspects, by handler. */
  readonly #due = new Map<string, Heap<DeliveryRow>>();
  /** What {@link claimSuspect} reads. */
  readonly #suspects = new Set<DeliveryRow>();
  readonly #lanes = new Map<string, Lane>();
  /** By the id of their worker. */
  readonly running = new Map<string, Set<DeliveryRow>>();
  /** By handler and state. */
  readonly #counts = new Map<string, { handler: string; state: DeliveryState; count: number }>();

  constructor(
    private readonly events: MemoryEvents,
    private readonly runtime: PaymentsRuntime,
  ) {}

  hasSuspects(handlers: readonly string[]): boolean {
    return [...this.#suspects].some(({ handler }) => handlers.includes(handler));
  }

  /** Adds a pending delivery, due in so many milliseconds. */
  add(event: EventRow, handler: string, dueInMs: number): DeliveryRow {
    const row: DeliveryRow = {
      event,
      handler,
      lane: this.#laneOf(event, handler),
      state: 'pending',
      attempts: 0,
      crashes: 0,
      alone: false,
      token: 0,
      worker: null,
      dueAt: this.#now() + dueInMs,
      startedAt: event.fixed.receivedAt,
      finishedAt: null,
      lastError: null,
      history: [],
    };
    event.deliveries.push(row);
    this.#enter(row);
    return row;
  }

  /** Whether a delivery of the event to the handler could be assigned on receipt. */
  isFree(event: EventRow, handler: string): boolean {
    const { company, orderingKey } = event.fixed;
    if (orderingKey === null) return true;
    const lane = this.#lanes.get(keyOf(company, handler, orderingKey));
    if (lane?.running) return false;
    const now = this.#now();
    for (const { dueAt } of lane?.pending ?? []) if (dueAt <= now) return false;
    return true;
  }

  /** Leases the longest due deliveries of the handler. */
  claim(worker: string, handler: string, limit: number): ClaimedDelivery[] {
    const claimed: ClaimedDelivery[] = [];
    const due = this.#due.get(handler);
    for (let row = due?.first; row && claimed.length < limit; row = due?.first) {
      if (row.dueAt > this.#now()) break;
      if (row.lane?.running) {
        due!.delete(row);
        row.lane.held.add(row);
      } else claimed.push(this.lease(row, worker, false));
    }
    return claimed;
  }

  claimSuspect(
    worker: string,
    handlers: readonly string[],
    alone: boolean,
  ): ClaimedDelivery | null {
    const now = this.#now();
    const ready = [...this.#suspects].filter(
      ({ handler, crashes, lane, dueAt }) =>
        handlers.includes(handler) && (alone || crashes === 1) && !lane?.running && dueAt <= now,
    );
    const [row] = ready.toSorted((a, b) => (dueBefore(a, b) ? -1 : 1));
    return row === undefined ? null : this.lease(row, worker, alone);
  }

  /** Makes a pending delivery running. */
  lease(row: DeliveryRow, worker: string, alone: boolean): ClaimedDelivery {
    this.#leave(row);
    row.attempts += 1;
    row.token += 1;
    const startedAt = new Date(this.runtime.now());
    Object.assign(row, { state: 'running', worker, alone, startedAt });
    this.#enter(row);
    const { fixed, seq, since, raw } = row.event;
    return {
      company: fixed.company,
      id: fixed.id,
      handler: row.handler,
      token: row.token,
      seq,
      attempt: row.attempts,
      receivedAt: fixed.receivedAt,
      ageMs: this.#now() - since,
      // The body of an unfinished event is never deleted. Whoever runs it gives the handler a copy.
      raw: raw!,
      newerHandled: row.lane !== null && row.lane.newestDone > fixed.occurredAt.getTime(),
      crashes: row.crashes,
    };
  }

  complete(lease: Lease): Settlement {
    return this.#settle(lease, (row) => {
      row.crashes = 0;
      this.#note(row, 'done', null);
      if (row.lane) {
        row.lane.newestDone = Math.max(row.lane.newestDone, row.event.fixed.occurredAt.getTime());
      }
      this.finish(row, 'done');
    });
  }

  fail(lease: Lease, failure: { error: string; retryInMs: number | null }): Settlement {
    return this.#settle(lease, (row) => {
      row.crashes = 0;
      row.lastError = boundedError(failure.error);
      this.#note(row, 'failed', row.lastError);
      if (failure.retryInMs === null) this.finish(row, 'dead');
      else this.reopen(row, failure.retryInMs);
    });
  }

  release(lease: Lease, dueInMs: number): Settlement {
    return this.#settle(lease, (row) => {
      row.attempts -= 1;
      this.reopen(row, dueInMs);
    });
  }

  /** Takes a running delivery from its worker: as lost, or from one that retired. */
  free(row: DeliveryRow, lost: boolean): void {
    row.token += 1;
    if (lost) {
      this.#note(row, 'lost', null);
      row.crashes += 1;
    }
    if (!lost || !row.alone) row.attempts -= 1;
    this.reopen(row, 0);
    this.#releaseNext(row.lane);
  }

  /** Makes the delivery pending, due in so many milliseconds; one that is pending: then at the latest. */
  reopen(row: DeliveryRow, dueInMs: number): void {
    const dueAt = this.#now() + dueInMs;
    const held = row.lane?.held.has(row) ?? false;
    this.#leave(row);
    row.dueAt = row.state === 'pending' ? Math.min(row.dueAt, dueAt) : dueAt;
    Object.assign(row, { state: 'pending', finishedAt: null });
    this.#enter(row, held);
  }

  finish(row: DeliveryRow, state: 'done' | 'dead' | 'skipped'): void {
    this.#leave(row);
    Object.assign(row, { state, finishedAt: new Date(this.runtime.now()) });
    this.#enter(row);
  }

  skip(row: DeliveryRow): void {
    const wasPending = row.state === 'pending';
    this.finish(row, 'skipped');
    if (wasPending) this.#releaseNext(row.lane);
  }

  /** Forgets the deliveries of an event whose deliveries are all finished. */
  strip({ deliveries }: EventRow): void {
    for (const row of deliveries) {
      this.#count(row, -1);
      if (row.lane !== null && (row.lane.size -= 1) === 0) this.#lanes.delete(row.lane.key);
    }
  }

  nextDueInMs(handlers: readonly string[]): number | null {
    const times = handlers.map((handler) => this.#due.get(handler)?.first?.dueAt ?? Infinity);
    const next = Math.min(...times);
    return next === Infinity ? null : next - this.#now();
  }

  /** Unfinished deliveries. */
  counts(): InboxStats['deliveries'] {
    return [...this.#counts.values()].flatMap(({ handler, state, count }) =>
      count === 0 || state === 'done' || state === 'skipped'
        ? []
        : [{ handler, state, count: Math.min(count, COUNT_CAP), more: count > COUNT_CAP }],
    );
  }

  #settle(lease: Lease, act: (row: DeliveryRow) => void): Settlement {
    const event = this.events.find(lease.company, lease.id);
    const row = event?.deliveries.find(({ handler }) => handler === lease.handler);
    const held = row?.state === 'running' && row.token === lease.token && event?.seq === lease.seq;
    if (!held) return { settled: false, nextDue: false };
    act(row);
    return { settled: true, nextDue: this.#releaseNext(row.lane) };
  }

  /** Makes the longest due of the held deliveries claimable, due now. */
  #releaseNext(lane: Lane | null): boolean {
    const next = lane?.held.first;
    if (next === undefined || lane!.running !== null) return false;
    this.#leave(next);
    next.dueAt = this.#now();
    this.#enter(next);
    return true;
  }

  #note(row: DeliveryRow, outcome: DeliveryAttempt['outcome'], error: string | null): void {
    const { attempts: attempt, startedAt } = row;
    const ended = { attempt, startedAt, endedAt: new Date(this.runtime.now()), outcome, error };
    row.history = row.history.concat(ended).slice(-HISTORY_LENGTH);
  }

  /** Puts the delivery where those of its state are. */
  #enter(row: DeliveryRow, held = false): void {
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
    this.events.update(row.event, this.#now());
  }

  /** Takes the delivery from where those of its state are. */
  #leave(row: DeliveryRow): void {
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
      for (const heap of [this.#due.get(handler), this.#suspects, lane?.held]) heap?.delete(row);
    }
  }

  #count({ handler, state }: DeliveryRow, by: number): void {
    const key = keyOf(state, handler);
    const counted = this.#counts.get(key) ?? { handler, state, count: 0 };
    counted.count += by;
    this.#counts.set(key, counted);
  }

  #laneOf({ fixed: { company, orderingKey } }: EventRow, handler: string): Lane | null {
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

  #now(): number {
    return this.runtime.monotonic();
  }
}

function dueBefore(a: DeliveryRow, b: DeliveryRow): boolean {
  return a.dueAt < b.dueAt || (a.dueAt === b.dueAt && a.event.seq < b.event.seq);
}
