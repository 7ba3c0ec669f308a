import type { PaymentsRuntime } from '../../payments.runtime.js';
import { boundedError, HISTORY_LENGTH } from '../delivery-history.js';
import type { ClaimedDelivery, DeliveryAttempt, Lease, Settlement } from '../inbox-store.js';
import type { MemoryEvents } from './memory-events.js';
import type { MemoryQueue } from './memory-queue.js';
import type { DeliveryRow, EventRow } from './memory-rows.js';

/** What changes the deliveries of a memory store. */
export class MemoryDeliveries {
  constructor(
    private readonly events: MemoryEvents,
    private readonly queue: MemoryQueue,
    private readonly runtime: PaymentsRuntime,
  ) {}

  /** Adds a pending delivery, due in so many milliseconds. */
  add(event: EventRow, handler: string, dueInMs: number): DeliveryRow {
    const row: DeliveryRow = {
      event,
      handler,
      lane: this.queue.joinLane(event, handler),
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
    this.#entered(row);
    return row;
  }

  claim(worker: string, handler: string, limit: number): ClaimedDelivery[] {
    const claimed: ClaimedDelivery[] = [];
    while (claimed.length < limit) {
      const row = this.queue.nextDue(handler, this.#now());
      if (row === undefined) break;
      claimed.push(this.lease(row, worker));
    }
    return claimed;
  }

  claimSuspect(worker: string, handlers: string[], alone: boolean): ClaimedDelivery | null {
    const row = this.queue.nextSuspect(handlers, alone, this.#now());
    return row === undefined ? null : this.lease(row, worker, alone);
  }

  /** Makes a pending delivery running. */
  lease(row: DeliveryRow, worker: string, alone = false): ClaimedDelivery {
    this.queue.leave(row);
    row.attempts += 1;
    row.token += 1;
    const startedAt = new Date(this.runtime.now());
    this.#entered(Object.assign(row, { state: 'running', worker, alone, startedAt }));
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
      const { lane, event } = row;
      row.crashes = 0;
      this.#note(row, 'done', null);
      if (lane) lane.newestDone = Math.max(lane.newestDone, event.fixed.occurredAt.getTime());
      this.#finish(row, 'done');
    });
  }

  fail(lease: Lease, failure: { error: string; retryInMs: number | null }): Settlement {
    return this.#settle(lease, (row) => {
      row.crashes = 0;
      row.lastError = boundedError(failure.error);
      this.#note(row, 'failed', row.lastError);
      if (failure.retryInMs === null) this.#finish(row, 'dead');
      else this.reopen(row, failure.retryInMs);
    });
  }

  release(lease: Lease, dueInMs: number): Settlement {
    return this.#settle(lease, (row) => {
      row.attempts -= 1;
      this.reopen(row, dueInMs);
    });
  }

  /** Takes the deliveries of a worker from it: as lost, unless it retired. */
  free(worker: string, lost: boolean): void {
    for (const row of this.queue.running.get(worker) ?? []) {
      row.token += 1;
      if (lost) {
        this.#note(row, 'lost', null);
        row.crashes += 1;
      }
      if (!lost || !row.alone) row.attempts -= 1;
      this.reopen(row, 0);
      this.queue.releaseHeld(row.lane, this.#now());
    }
  }

  /** Makes the delivery pending, due in so many milliseconds; one that is pending: then at the latest. */
  reopen(row: DeliveryRow, dueInMs: number): void {
    const held = row.lane?.held.has(row) ?? false;
    this.queue.leave(row);
    const dueAt = this.#now() + dueInMs;
    row.dueAt = row.state === 'pending' ? Math.min(row.dueAt, dueAt) : dueAt;
    this.#entered(Object.assign(row, { state: 'pending', finishedAt: null }), held);
  }

  /** Skips those that are pending or dead; returns how many. */
  skip(rows: readonly DeliveryRow[]): number {
    let skipped = 0;
    for (const row of rows) {
      const { state, lane } = row;
      if (state !== 'pending' && state !== 'dead') continue;
      row.crashes = 0;
      this.#finish(row, 'skipped');
      if (state === 'pending') this.queue.releaseHeld(lane, this.#now());
      skipped += 1;
    }
    return skipped;
  }

  #settle(lease: Lease, act: (row: DeliveryRow) => void): Settlement {
    const event = this.events.find(lease.company, lease.id);
    const row = event?.deliveries.find(({ handler }) => handler === lease.handler);
    const held = row?.state === 'running' && row.token === lease.token && event?.seq === lease.seq;
    if (!held) return { settled: false, nextDue: false };
    act(row);
    return { settled: true, nextDue: this.queue.releaseHeld(row.lane, this.#now()) };
  }

  #finish(row: DeliveryRow, state: 'done' | 'dead' | 'skipped'): void {
    this.queue.leave(row);
    this.#entered(Object.assign(row, { state, finishedAt: new Date(this.runtime.now()) }));
  }

  #entered(row: DeliveryRow, held = false): void {
    this.queue.enter(row, held);
    this.events.update(row.event, this.#now());
  }

  #note(row: DeliveryRow, outcome: DeliveryAttempt['outcome'], error: string | null): void {
    const { attempts: attempt, startedAt } = row;
    const ended = { attempt, startedAt, endedAt: new Date(this.runtime.now()), outcome, error };
    row.history = row.history.concat(ended).slice(-HISTORY_LENGTH);
  }

  #now(): number {
    return this.runtime.monotonic();
  }
}
