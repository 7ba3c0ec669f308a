import {
  POLL_HANDLER,
  referenceOfEvent,
} from '../../libs/payments/dist/inbox/store/expectation-store.js';
import type {
  ClaimedDelivery,
  ExpectationState,
  IncomingEvent,
  Lease,
  NewExpectation,
  PollOutcome,
  SettleResult,
  StoredExpectation,
  StoreReceipt,
} from '../../libs/payments/dist/inbox/store/inbox-store.js';
import type { AttemptJournal } from './attempt-journal.ts';
import { POLLED_TYPES, referenceOf } from './simulated-service.ts';
import type { SimulatedService } from './simulated-service.ts';
import type { SimulatedProcess } from './simulated-process.ts';

/** The expected state of an expectation and of its polls. */
interface ModelExpectation {
  readonly company: string;
  readonly reference: string;
  transactionId: string | null;
  state: ExpectationState;
  fulfilledAt: number;
  /** `<id> by <source>` of the event that fulfilled it. */
  event: string | null;
  poll: 'pending' | 'running' | 'done';
  /** The last claim of a poll. */
  claim: { readonly token: number; readonly worker: string; readonly since: number } | null;
  /** The token of the poll that last stored an event for handlers of overdue payments. */
  overdueToken: number | null;
}

/** The expected state of every expectation, computed from the operations that took effect, as in `DeliveryModel`. */
export class ExpectationModel {
  readonly violations: string[] = [];
  readonly #rows = new Map<string, ModelExpectation>();
  readonly #sources = new Map<string, string>();
  /** When the first event of a transaction and type was stored. */
  readonly #storedAt = new Map<string, number>();
  readonly #journal: AttemptJournal;
  readonly #service: SimulatedService;
  readonly #now: () => number;

  constructor(journal: AttemptJournal, service: SimulatedService, now: () => number) {
    this.#journal = journal;
    this.#service = service;
    this.#now = now;
  }

  /** Whether a worker has a running poll. */
  holds(worker: string): boolean {
    return [...this.#rows.values()].some(
      ({ poll, claim }) => poll === 'running' && claim?.worker === worker,
    );
  }

  expected({ company, reference, transactionId }: NewExpectation, isNew: boolean): void {
    const key = `${company}/${reference}`;
    if (isNew === this.#rows.has(key)) this.violations.push(`EX-01 expect of ${key}: ${isNew}`);
    if (!isNew) return;
    const state = { state: 'waiting', fulfilledAt: Infinity, event: null } as const;
    const row = { company, reference, transactionId, poll: 'pending', claim: null } as const;
    const overdue = { overdueToken: null } as const;
    this.#rows.set(key, { ...row, ...state, ...overdue });
  }

  attached(company: string, reference: string, transactionId: string, result: unknown): void {
    const row = this.#rows.get(`${company}/${reference}`);
    if (row === undefined) {
      if (result !== 'unknown') this.violations.push(`EX-01 ${reference} cannot be attached`);
      return;
    }
    row.transactionId ??= transactionId;
    const expected = row.transactionId === transactionId ? 'attached' : 'conflict';
    if (result !== expected) this.violations.push(`EX-01 attach is ${String(result)}: ${expected}`);
  }

  cancelled(company: string, reference: string, result: boolean): void {
    const row = this.#rows.get(`${company}/${reference}`);
    if (result !== (row !== undefined && isOpen(row))) {
      this.violations.push(`EX-01 cancel of ${reference} returned ${result}: ${row?.state}`);
    }
    if (row !== undefined && result) end(row, 'cancelled');
  }

  polledNow(selections: readonly { readonly company: string; readonly reference: string }[]): void {
    for (const { company, reference } of selections) {
      const row = this.#rows.get(`${company}/${reference}`);
      if (row?.poll === 'done' && row.state !== 'cancelled') row.poll = 'pending';
    }
  }

  received(
    process: SimulatedProcess,
    events: readonly IncomingEvent[],
    receipts: readonly StoreReceipt[],
  ): void {
    events.forEach((event, index) => {
      const { outcome, id } = receipts[index]!;
      if (outcome === 'outdated') return;
      const { company, orderingKey, source, eventType } = event;
      const stored = `${company}/${id}`;
      if (outcome === 'stored') {
        this.#checkStored(process, event);
        this.#sources.set(stored, source);
        this.#storedAt.set(`${company}/${orderingKey}/${eventType}`, this.#now());
      }
      const fulfils = POLLED_TYPES.some((type) => type === eventType);
      if (event.fulfils !== fulfils) this.violations.push(`EX-05 ${stored} fulfils: ${!fulfils}`);
      if (!fulfils || (outcome === 'conflict' && source !== 'poll')) return;
      const reference =
        source === 'webhook' ? referenceOf(Number.parseInt(event.id.slice(1))) : null;
      if (event.reference !== reference) this.violations.push(`EX-05 ${stored} has no reference`);
      for (const row of this.#rows.values()) {
        const isOwn = orderingKey !== null && row.transactionId === orderingKey;
        if (row.company !== company || !isOpen(row)) continue;
        if (!isOwn && row.reference !== reference) continue;
        row.event = `${id} by ${this.#sources.get(stored)}`;
        row.fulfilledAt = this.#now();
        end(row, 'fulfilled');
      }
    });
  }

  /** Call it with the polls that were claimed. */
  claimed(worker: string, claimed: readonly ClaimedDelivery[]): void {
    for (const { company, id, token, attempt } of claimed) {
      const row = this.#rows.get(keyOf({ company, id }));
      if (row === undefined) {
        this.violations.push(`${company}/${id} was polled, but is not expected`);
        continue;
      }
      const { poll, state, claim } = row;
      if (poll === 'done') {
        this.violations.push(`EX-05 ${company}/${id} is ${state}, and was polled again`);
      }
      if (poll === 'running' && !this.#journal.lost(claim!.worker, claim!.since)) {
        this.violations.push(`EX-03 ${company}/${id} is polled twice at the same time`);
      }
      if (token <= (claim?.token ?? -Infinity)) {
        this.violations.push(`IN-13 the token of ${company}/${id} did not increase`);
      }
      if (attempt > 1 + (this.#journal.hasRetired(worker) ? 1 : 0) && poll === 'pending') {
        this.violations.push(`EX-03 a poll of ${company}/${id} was charged: attempt ${attempt}`);
      }
      row.poll = 'running';
      row.claim = { token, worker, since: this.#now() };
    }
  }

  /** Call it after `settlePoll`, `complete` or `release` of a poll, settled or not. */
  settled(
    lease: Lease,
    by: 'complete' | 'release' | PollOutcome,
    { settled }: Pick<SettleResult, 'settled'>,
  ): void {
    const row = this.#rows.get(keyOf(lease))!;
    const { claim, state } = row;
    const isCurrent = row.poll === 'running' && claim?.token === lease.token;
    if (settled && !isCurrent) {
      this.violations.push(
        `IN-13 token ${lease.token} of ${lease.id} was outdated, but settled it`,
      );
    }
    if (!settled && isCurrent && !this.#journal.lost(claim.worker, claim.since)) {
      this.violations.push(`IN-13 token ${lease.token} of ${lease.id} was current`);
    }
    if (!settled) return;
    if (by === 'release') {
      row.poll = 'pending';
      return;
    }
    if (by === 'complete') {
      if (state === 'waiting') this.violations.push(`EX-03 ${lease.id} waits, without a poll`);
      row.poll = 'done';
      return;
    }
    const reported = row.overdueToken === lease.token;
    if (reported && (by.result === 'event' || by.next !== 'overdue')) {
      this.violations.push(`EX-07 ${lease.id} was reported as overdue, and its poll: ${by.result}`);
    }
    if (by.result === 'event' && isOpen(row)) {
      this.violations.push(`EX-04 a poll of ${lease.id} found its event, and it is ${state}`);
    }
    row.poll = state === 'waiting' && typeof by.next === 'number' ? 'pending' : 'done';
    if (state === 'waiting' && by.next === 'overdue') row.state = 'overdue';
  }

  /** Compares the stored expectations with the model. Call it when no operation is under way. */
  checkStored(expectations: readonly StoredExpectation[]): void {
    const is = expectations.map(({ company, reference, transactionId, state, fulfilled }) =>
      shown(company, reference, transactionId, state, fulfilled && describeFulfilment(fulfilled)),
    );
    const must = [...this.#rows.values()].map(
      ({ company, reference, transactionId, state, event }) =>
        shown(company, reference, transactionId, state, event),
    );
    const wrong = is.toSorted().join('; ');
    const right = must.toSorted().join('; ');
    if (wrong !== right) this.violations.push(`the expectations are ${wrong}, not ${right}`);
  }

  #checkStored(process: SimulatedProcess, event: IncomingEvent): void {
    const { company, id, orderingKey, eventType, source } = event;
    if (source === 'poll') {
      const askedAt = this.#service.askedAt(process, company, orderingKey!);
      for (const other of POLLED_TYPES) {
        const storedAt = this.#storedAt.get(`${company}/${orderingKey}/${other}`) ?? Infinity;
        if (other === eventType || storedAt >= askedAt) continue;
        this.violations.push(`EX-06 ${company}/${id} contradicts ${other}, but was stored`);
      }
    }
    if (source !== 'overdue') return;
    const row = this.#rows.get(`${company}/${id.slice('overdue:'.length)}`);
    if (row === undefined || row.fulfilledAt < (row.claim?.since ?? Infinity)) {
      this.violations.push(`EX-07 ${company}/${id} was reported, although it was fulfilled`);
    }
    if (row !== undefined) row.overdueToken = row.claim?.token ?? null;
  }
}

/** Whether a lease is one of a poll. */
export function isPoll({ handler }: { readonly handler: string }): boolean {
  return handler === POLL_HANDLER;
}

function keyOf({ company, id }: { readonly company: string; readonly id: string }): string {
  return `${company}/${referenceOfEvent(id)}`;
}

function isOpen({ state }: ModelExpectation): boolean {
  return state === 'waiting' || state === 'overdue';
}

function end(row: ModelExpectation, state: ExpectationState): void {
  row.state = state;
  if (row.poll === 'pending') row.poll = 'done';
}

function describeFulfilment({ eventId, by }: NonNullable<StoredExpectation['fulfilled']>): string {
  return `${eventId} by ${by}`;
}

function shown(...parts: readonly (string | null)[]): string {
  return parts.join(' ');
}
