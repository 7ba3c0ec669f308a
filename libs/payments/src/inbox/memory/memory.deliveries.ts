import type { PaymentsRuntime } from '../../payments.runtime.js';
import { boundedError, HISTORY_LENGTH } from '../delivery-history.js';
import type { ClaimedDelivery, Lease } from '../inbox-store.js';
import { MemoryQueue } from './memory.queue.js';
import { deliveryRow } from './memory.rows.js';
import type { AttemptRow, DeliveryRow, EventRow } from './memory.rows.js';
import type { MemoryShelf } from './memory.shelf.js';

/** The deliveries of a memory store: how each of them comes from one state to the next. */
export class MemoryDeliveries {
  readonly #queue = new MemoryQueue();
  #order = 0;

  constructor(
    private readonly shelf: MemoryShelf,
    private readonly runtime: PaymentsRuntime,
  ) {}

  /** Gives the event one more delivery, which {@link reopen} makes due. */
  add(event: EventRow, handler: string): DeliveryRow {
    const row = deliveryRow(event, handler, (this.#order += 1));
    // An array made for its one element is a ninth of one that was pushed to.
    event.deliveries = event.deliveries.length === 0 ? [row] : event.deliveries.concat(row);
    return row;
  }

  claim(handlers: readonly string[], limit: number, leaseMs: number): ClaimedDelivery[] {
    const now = this.#now();
    const claimed: ClaimedDelivery[] = [];
    while (claimed.length < limit) {
      const row = this.#queue.next(handlers, now);
      if (row === undefined) break;
      const takenOver = row.state === 'running';
      if (takenOver) this.#note(row, 'lost', this.#wall(row.dueAt));
      this.#queue.lease(row, now + leaseMs);
      row.state = 'running';
      row.attempts += 1;
      row.token += 1;
      row.startedAt = this.runtime.now();
      claimed.push(this.#claimed(row, takenOver));
    }
    return claimed;
  }

  extend(lease: Lease, leaseMs: number): boolean {
    return this.#held(lease, (row) => {
      this.#queue.extend(row, this.#now() + leaseMs);
    });
  }

  complete(lease: Lease): boolean {
    return this.#held(lease, (row) => {
      this.#note(row, 'done', this.runtime.now());
      this.finish(row, 'done');
    });
  }

  fail(lease: Lease, failure: { error: string; retryInMs: number | null }): boolean {
    return this.#held(lease, (row) => {
      row.lastError = boundedError(failure.error);
      this.#note(row, 'failed', this.runtime.now());
      if (failure.retryInMs === null) this.finish(row, 'dead');
      else this.reopen(row, failure.retryInMs);
    });
  }

  release(lease: Lease, dueInMs: number): boolean {
    return this.#held(lease, (row) => {
      row.attempts -= 1;
      this.reopen(row, dueInMs);
    });
  }

  /** Makes it pending, due in so many milliseconds. */
  reopen(row: DeliveryRow, dueInMs: number): void {
    this.#queue.remove(row);
    row.state = 'pending';
    row.dueAt = this.#now() + dueInMs;
    row.finishedAt = null;
    this.#queue.add(row);
    this.shelf.update(row.event, this.#now());
  }

  finish(row: DeliveryRow, state: 'done' | 'dead' | 'skipped'): void {
    row.state = state;
    row.finishedAt = this.runtime.now();
    this.#queue.remove(row);
    this.shelf.update(row.event, this.#now());
  }

  /** Until the next of these handlers is due, or its lease ends; `null` if none waits. */
  nextDueInMs(handlers: readonly string[]): number | null {
    const next = this.#queue.nextDueAt(handlers);
    return next === undefined ? null : next - this.#now();
  }

  /** The wall clock's time of one of the monotonic clock. */
  readonly toDate = (monotonicMs: number): Date => new Date(this.#wall(monotonicMs));

  #wall(monotonicMs: number): number {
    return this.runtime.now() + monotonicMs - this.#now();
  }

  #now(): number {
    return this.runtime.monotonic();
  }

  #note(row: DeliveryRow, outcome: AttemptRow['outcome'], endedAt: number): void {
    const { attempts: attempt, startedAt } = row;
    const error = outcome === 'failed' ? row.lastError : null;
    const ended = { attempt, startedAt, endedAt, outcome, error };
    row.history = row.history.concat(ended).slice(-HISTORY_LENGTH);
  }

  #held(lease: Lease, act: (row: DeliveryRow) => void): boolean {
    const row = this.shelf
      .find(lease.company, lease.id)
      ?.deliveries.find(({ handler }) => handler === lease.handler);
    const held = row?.state === 'running' && row.token === lease.token && row.dueAt > this.#now();
    if (held) act(row);
    return held;
  }

  #claimed(row: DeliveryRow, takenOver: boolean): ClaimedDelivery {
    const { company, id, receivedAt, since, raw, occurredAt, related } = row.event;
    const newerHandled =
      related !== null &&
      related.some(
        (other) =>
          other.occurredAt > occurredAt &&
          other.deliveries.some(
            ({ handler, state }) => handler === row.handler && state === 'done',
          ),
      );
    return {
      company,
      id,
      handler: row.handler,
      token: row.token,
      attempt: row.attempts,
      receivedAt: new Date(receivedAt),
      ageMs: this.#now() - since,
      // Bodies of unfinished events are never let go. Whoever runs one gives the handler a copy.
      raw: raw!,
      newerHandled,
      takenOver,
    };
  }
}
