import type { PaymentsRuntime } from '../../runtime/payments-runtime.js';
import {
  EXPECTATION_EVENT_TYPE,
  expectationEventId,
  POLL_HANDLER,
} from '../store/expectation-store.js';
import type {
  ExpectationPage,
  ExpectationStore,
  IncomingEvent,
  Lease,
  NewExpectation,
  PollOutcome,
  SettleResult,
  StoredExpectation,
} from '../store/inbox-store.js';
import { boundedError } from '../store/stored-event.js';
import type { EventIndex } from './event-index.js';
import type { MemoryDeliveries } from './memory-deliveries.js';
import { capped, matchesExpectation } from './memory-queries.js';
import { MemoryEvent } from './memory-rows.js';
import type { MemoryDelivery } from './memory-rows.js';

/** The fields that the events of all expectations share. */
const EVENT = {
  eventType: EXPECTATION_EVENT_TYPE,
  source: 'expectation',
  orderingKey: null,
  summary: null,
  onceKey: null,
  raw: Buffer.from('{}'),
  headers: {},
  stale: false,
} as const;

type Mutable<T> = { -readonly [Key in keyof T]: T[Key] };

/** An expectation in the memory store. The only delivery of its event is its next poll. */
interface MemoryExpectation extends Mutable<Omit<StoredExpectation, 'nextPollAt' | 'ageMs'>> {
  readonly event: MemoryEvent;
}

/** The expectations of a memory store. */
export class MemoryExpectations implements ExpectationStore {
  /** By company and reference, in the order of creation. */
  readonly #rows = new Map<string, MemoryExpectation>();
  readonly #byTransaction = new Map<string, Set<MemoryExpectation>>();
  #seq = 0;

  constructor(
    private readonly deliveries: MemoryDeliveries,
    private readonly events: EventIndex,
    private readonly expected: EventIndex,
    private readonly runtime: PaymentsRuntime,
  ) {
    expected.onForget = (event) => this.#forget(event);
  }

  async expect(expectation: NewExpectation, tx?: unknown): Promise<boolean> {
    assertNoTransaction(tx);
    const now = this.runtime.monotonic();
    this.expected.forgetExpired(now);
    const event = this.#eventOf(expectation, now);
    if (this.#rows.has(event.idKey)) return false;
    this.expected.add(event);
    this.expected.makeRoom([event]);
    const { transactionId, firstPollInMs, ...fields } = expectation;
    const row: MemoryExpectation = {
      ...fields,
      schedule: [...expectation.schedule],
      transactionId: null,
      event,
      createdAt: new Date(event.receivedMs),
      state: 'waiting',
      polls: 0,
      lastPoll: null,
      fulfilled: null,
      contradiction: null,
    };
    this.#rows.set(event.idKey, row);
    if (transactionId !== null) this.#attach(row, transactionId);
    this.deliveries.deliver(event, POLL_HANDLER, firstPollInMs);
    this.deliveries.wake();
    return true;
  }

  async attach(
    ...[company, reference, transactionId, tx]: Parameters<ExpectationStore['attach']>
  ): ReturnType<ExpectationStore['attach']> {
    assertNoTransaction(tx);
    const row = this.#find(company, reference);
    if (row === undefined) return 'unknown';
    if (row.transactionId === null) this.#attach(row, transactionId);
    return row.transactionId === transactionId ? 'attached' : 'conflict';
  }

  async cancel(company: string, reference: string): Promise<boolean> {
    const row = this.#find(company, reference);
    if (row === undefined || !isOpen(row)) return false;
    row.state = 'cancelled';
    this.#endPendingPoll(row);
    return true;
  }

  async find(company: string, reference: string): Promise<StoredExpectation | undefined> {
    const row = this.#find(company, reference);
    return row && this.#describe(row);
  }

  async list(query: Parameters<ExpectationStore['list']>[0]): Promise<ExpectationPage> {
    const { filter, limit, after } = query;
    const before = after === null ? Infinity : Number(after);
    const rows = [...this.#rows.values()].toReversed();
    const page = rows.filter((row) => row.event.seq < before && matchesExpectation(row, filter));
    return {
      expectations: page.slice(0, limit).map((row) => this.#describe(row)),
      next: page.length > limit ? String(page[limit - 1]!.event.seq) : null,
    };
  }

  async settlePoll(lease: Lease, { result, detail, next }: PollOutcome): Promise<SettleResult> {
    return this.deliveries.settle(lease, (delivery) => {
      const row = this.#rows.get(delivery.event.idKey)!;
      const line = detail === null ? null : boundedError(detail);
      row.polls += 1;
      row.lastPoll = { at: new Date(this.runtime.now()), result, detail: line };
      if (result === 'contradiction') row.contradiction = line ?? row.contradiction;
      delivery.crashes = 0;
      if (row.state === 'waiting' && typeof next === 'number') {
        // A poll is never charged, so that it cannot run out of attempts.
        delivery.attempts = 0;
        return this.deliveries.reopen(delivery, next);
      }
      if (row.state === 'waiting' && next === 'overdue') row.state = 'overdue';
      return this.deliveries.move(delivery, 'done');
    });
  }

  async pollNow(
    ...[selections, dueInMs]: Parameters<ExpectationStore['pollNow']>
  ): Promise<number> {
    let changed = 0;
    for (const [n, { company, reference }] of selections.entries()) {
      const row = this.#find(company, reference);
      const delivery = row && deliveryOf(row);
      if (!delivery || row.state === 'cancelled' || delivery.state === 'running') continue;
      if (delivery.state !== 'pending') delivery.attempts = 0;
      this.deliveries.reopen(delivery, dueInMs[n] ?? 0);
      changed += 1;
    }
    if (changed > 0) this.deliveries.wake();
    return changed;
  }

  async eventsOf(
    ...[company, transactionId, eventTypes]: Parameters<ExpectationStore['eventsOf']>
  ): ReturnType<ExpectationStore['eventsOf']> {
    const rows = eventTypes.map((type) => this.events.findOnce(company, type, transactionId));
    return rows.flatMap((row) =>
      row ? [{ id: row.fixed.id, eventType: row.fixed.eventType }] : [],
    );
  }

  async counts(): ReturnType<ExpectationStore['counts']> {
    const counts = { waiting: 0, overdue: 0, fulfilled: 0, cancelled: 0 };
    for (const { state } of this.#rows.values()) counts[state] += 1;
    return { waiting: capped(counts.waiting), overdue: capped(counts.overdue) };
  }

  /** Fulfils the open expectations of an event that was received. `stored` is the event, or the first copy of it. */
  fulfil({ company, orderingKey, reference }: IncomingEvent, stored: MemoryEvent): void {
    const rows = [...(this.#byTransaction.get(`${company}\n${orderingKey}`) ?? [])];
    const named = reference === null ? undefined : this.#find(company, reference);
    if (named !== undefined) rows.push(named);
    const { id: eventId, source: by, eventType } = stored.fixed;
    for (const row of rows.filter(isOpen)) {
      row.state = 'fulfilled';
      row.fulfilled = { at: new Date(this.runtime.now()), by, eventId, eventType };
      this.#endPendingPoll(row);
    }
  }

  #find(company: string, reference: string): MemoryExpectation | undefined {
    return this.#rows.get(`${company}\n${expectationEventId(reference)}`);
  }

  #attach(row: MemoryExpectation, transactionId: string): void {
    row.transactionId = transactionId;
    const key = transactionKey(row);
    this.#byTransaction.set(key, (this.#byTransaction.get(key) ?? new Set()).add(row));
  }

  #forget({ idKey }: MemoryEvent): void {
    const row = this.#rows.get(idKey);
    if (row === undefined) return;
    this.#rows.delete(idKey);
    const key = transactionKey(row);
    const rows = this.#byTransaction.get(key);
    rows?.delete(row);
    if (rows?.size === 0) this.#byTransaction.delete(key);
  }

  #endPendingPoll(row: MemoryExpectation): void {
    const delivery = deliveryOf(row);
    if (delivery?.state !== 'pending') return;
    delivery.crashes = 0;
    this.deliveries.move(delivery, 'done');
  }

  #eventOf({ company, reference }: NewExpectation, now: number): MemoryEvent {
    const [id, occurredMs] = [expectationEventId(reference), this.runtime.now()];
    const event = { ...EVENT, company, id, occurredAt: new Date(occurredMs) };
    return new MemoryEvent(event, occurredMs, now, (this.#seq += 1));
  }

  #describe(row: MemoryExpectation): StoredExpectation {
    const { event, ...fields } = row;
    const now = this.runtime.monotonic();
    const delivery = deliveryOf(row);
    const nextPollAt =
      delivery?.state === 'pending' ? new Date(this.runtime.now() + delivery.dueAt - now) : null;
    return { ...fields, ageMs: now - event.receivedAt, nextPollAt };
  }
}

function isOpen({ state }: MemoryExpectation): boolean {
  return state === 'waiting' || state === 'overdue';
}

/** The delivery of the polls of an expectation; `undefined` after it was pruned. */
function deliveryOf({ event }: MemoryExpectation): MemoryDelivery | undefined {
  return event.raw === null ? undefined : event.deliveries[0];
}

function transactionKey({ company, transactionId }: MemoryExpectation): string {
  return `${company}\n${transactionId}`;
}

function assertNoTransaction(tx: unknown): void {
  if (tx === undefined) return;
  throw new TypeError(
    'The memory inbox has no transactions: call expect() and attach() without "tx", or keep the inbox ' +
      'in the database of the application.',
  );
}
