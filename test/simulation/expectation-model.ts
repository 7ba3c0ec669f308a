import type {
  ClaimedPoll,
  ExpectationName,
  ExpectationState,
  IncomingEvent,
  NewExpectation,
  PollLease,
  PollSettlement,
  RequestState,
  SettledPoll,
  StartedRequest,
  StoredExpectation,
  StoreReceipt,
} from '../../libs/payments/dist/inbox/store/inbox-store.js';
import type { EventPlan } from './scenario.ts';
import { POLLED_TYPES, webhookReference } from './simulated-service.ts';

/** The expected state of an expectation and of its polls. */
interface ModelExpectation {
  readonly company: string;
  readonly reference: string;
  transactionId: string | null;
  state: ExpectationState;
  /** The transaction and `<id> by <source>` of the event that fulfilled it. */
  fulfilled: { readonly transaction: string | null; readonly event: string } | null;
  /** Whether a poll is scheduled. */
  scheduled: boolean;
  /** The last request of the payment. */
  request:
    'never' | 'answered' | 'unknown' | 'accepted' | { token: number; readonly until: number };
  /** The poll that is leased. */
  claim: { readonly token: number; readonly until: number } | null;
  lastToken: number;
}

/** The expected state of every expectation, computed from the operations that took effect, as in `DeliveryModel`. */
export class ExpectationModel {
  readonly violations: string[] = [];
  readonly #rows = new Map<string, ModelExpectation>();
  readonly #bySeq = new Map<number, ModelExpectation>();
  readonly #sources = new Map<string, string>();
  /** Ids of the events that are stored once per transaction and type. */
  readonly #once = new Map<string, string>();
  readonly #now: () => number;
  readonly #events: readonly EventPlan[];

  constructor(now: () => number, events: readonly EventPlan[]) {
    this.#now = now;
    this.#events = events;
  }

  expected({ company, reference, transactionId }: NewExpectation, isNew: boolean): void {
    const key = `${company}/${reference}`;
    const known = this.#rows.get(key);
    if (isNew !== (known === undefined || known.state === 'cancelled'))
      this.violations.push(`EX-01 EX-16 expect of ${key}: ${isNew}`);
    if (!isNew) return;
    // The new expectation replaces the cancelled expectation and the lease of its poll.
    if (known !== undefined) known.claim = null;
    const poll = { scheduled: true, claim: null, lastToken: -Infinity };
    const request = typeof known?.request === 'object' ? known.request : 'never';
    const state = { state: 'waiting', fulfilled: null, request } as const;
    this.#rows.set(key, { company, reference, transactionId, ...state, ...poll });
  }

  attached(company: string, reference: string, transactionId: string, result: unknown): void {
    const row = this.#rows.get(`${company}/${reference}`);
    const isTaken = [...this.#rows.values()].some(
      (other) =>
        other.company === company &&
        other.transactionId === transactionId &&
        other.state !== 'cancelled',
    );
    let expected = 'attached';
    if (row === undefined) expected = 'unknown';
    else if (row.state === 'cancelled') expected = 'cancelled';
    else if (row.transactionId === null ? isTaken : row.transactionId !== transactionId)
      expected = 'conflict';
    if (result !== expected) this.violations.push(`EX-01 attach is ${String(result)}: ${expected}`);
    if (row === undefined || expected !== 'attached' || row.transactionId !== null) return;
    row.transactionId = transactionId;
    const isOther = row.fulfilled !== null && row.fulfilled.transaction !== transactionId;
    if (isOther) Object.assign(row, { state: 'waiting', fulfilled: null });
    if (isOther || row.state === 'overdue') row.scheduled = true;
  }

  cancelled(company: string, reference: string, result: boolean): void {
    const row = this.#rows.get(`${company}/${reference}`);
    if (result !== (row !== undefined && isOpen(row))) {
      this.violations.push(`EX-01 cancel of ${reference} returned ${result}: ${row?.state}`);
    }
    if (row !== undefined && result) end(row, 'cancelled');
  }

  /** Call this method after `startRequest`. */
  requestStarted(
    company: string,
    reference: string,
    leaseMs: number,
    result: StartedRequest | undefined,
  ): void {
    const row = this.#rows.get(`${company}/${reference}`);
    if ((row === undefined) !== (result === undefined))
      this.violations.push(`EX-15 startRequest of ${reference}: ${result?.previous}`);
    if (row === undefined || result === undefined) return;
    const { request } = row;
    const previous =
      row.transactionId !== null
        ? 'accepted'
        : typeof request === 'string'
          ? request
          : request.until > this.#now()
            ? 'running'
            : 'unknown';
    const granted = isOpen(row) && previous !== 'running' && previous !== 'accepted';
    if (result.previous !== previous || (result.token !== null) !== granted)
      this.violations.push(
        `EX-15 the request of ${reference} was ${result.previous}, token ${result.token}: ${previous}`,
      );
    if (result.token !== null) row.request = { token: result.token, until: this.#now() + leaseMs };
  }

  /** Call this method after `endRequest`. */
  requestEnded(
    { company, reference }: ExpectationName,
    token: number,
    to: RequestState | 'cancelled',
    result: boolean,
  ): void {
    const row = this.#rows.get(`${company}/${reference}`);
    const isCurrent = typeof row?.request === 'object' && row.request.token === token;
    if (result !== isCurrent)
      this.violations.push(`EX-15 the end of the request of ${reference} with ${to}: ${result}`);
    if (row === undefined || !isCurrent || to === 'running') return;
    row.request = to === 'cancelled' ? 'never' : to;
    if (to === 'cancelled' && row.state === 'waiting' && row.transactionId === null)
      end(row, 'cancelled');
  }

  polledNow(selections: readonly ExpectationName[]): void {
    for (const { company, reference } of selections) {
      const row = this.#rows.get(`${company}/${reference}`);
      if (row === undefined || row.state === 'cancelled' || this.#runs(row)) continue;
      row.scheduled = true;
    }
  }

  received(events: readonly IncomingEvent[], receipts: readonly StoreReceipt[]): void {
    events.forEach((event, index) => {
      const { outcome, id, fulfilled } = receipts[index]!;
      if (outcome === 'outdated') return;
      const { company, source, eventType } = event;
      const stored = `${company}/${id}`;
      if (outcome === 'stored') {
        this.#sources.set(stored, source);
        if (!event.stale) this.#storedOnce(event);
      }
      const fulfils = !event.stale && isPolled(eventType);
      if (event.fulfils !== fulfils) this.violations.push(`EX-05 ${stored} fulfils: ${!fulfils}`);
      const reference = this.#referenceOf(event);
      if (fulfils && event.reference !== reference)
        this.violations.push(`EX-05 ${stored} has no reference`);
      const changed = fulfils && outcome !== 'conflict' ? this.#fulfilAll(event, id) : [];
      const reported = fulfilled.map((one) => one.reference).toSorted();
      if (reported.join() !== changed.toSorted().join())
        this.violations.push(`EX-05 ${stored} fulfilled ${reported.join()}, not ${changed.join()}`);
    });
  }

  /**
   * Call this method after an operator redrove a stale event, which then counts as the event of its transaction. `fulfils`
   * contains the event types that fulfil expectations in the process. It may be empty in a process that has just
   * started.
   */
  redriven(event: IncomingEvent, fulfils: readonly string[]): void {
    this.#storedOnce(event);
    if (fulfils.includes(event.eventType)) this.#fulfilAll(event, event.id);
  }

  #storedOnce({ company, orderingKey, oncePerTransaction, eventType, id }: IncomingEvent): void {
    if (!oncePerTransaction || orderingKey === null) return;
    const key = `${company}/${orderingKey}/${eventType}`;
    const first = this.#once.get(key);
    if (first !== undefined)
      this.violations.push(`EX-17 ${company}/${id} has the transaction of ${first}`);
    this.#once.set(key, id);
  }

  /** The application's reference in an event. */
  #referenceOf({ source, id }: IncomingEvent): string | null {
    const index = Number.parseInt(id.slice(1));
    return source === 'webhook' ? webhookReference(this.#events[index]!, index) : null;
  }

  /** Fulfils the open expectations of a received event. `id` is the id of the event or of its first copy. */
  #fulfilAll(event: IncomingEvent, id: string): string[] {
    const { company, orderingKey } = event;
    const reference = this.#referenceOf(event);
    const own = [...this.#rows.values()].filter(
      (row) =>
        row.company === company &&
        isOpen(row) &&
        (row.transactionId === null
          ? row.reference === reference
          : row.transactionId === orderingKey),
    );
    for (const row of own) this.#fulfil(row, id, orderingKey);
    return own.map((row) => row.reference);
  }

  /** Call this method with the polls that were claimed. */
  claimed(polls: readonly ClaimedPoll[], leaseMs: number): void {
    for (const { seq, token, expectation } of polls) {
      const name = `${expectation.company}/${expectation.reference}`;
      const row = this.#rows.get(name);
      if (row === undefined) {
        this.violations.push(`${name} was polled, but is not expected`);
        continue;
      }
      if (this.#runs(row)) this.violations.push(`EX-03 ${name} is polled twice at the same time`);
      if (!row.scheduled && row.claim === null)
        this.violations.push(`EX-05 ${name} is ${row.state}, and was polled again`);
      if (token <= row.lastToken)
        this.violations.push(`IN-13 the token of ${name} did not increase`);
      this.#bySeq.set(seq, row);
      Object.assign(row, {
        claim: { token, until: this.#now() + leaseMs },
        lastToken: token,
        scheduled: false,
      });
    }
  }

  released(leases: readonly PollLease[]): void {
    for (const { seq, token } of leases) {
      const row = this.#bySeq.get(seq);
      if (row?.claim?.token !== token) continue;
      Object.assign(row, { claim: null, scheduled: row.state !== 'cancelled' });
    }
  }

  /** Call this method after `settlePoll`, settled or not. */
  settled({ lease, outcome, event, eventTypes }: PollSettlement, result: SettledPoll): void {
    const row = this.#bySeq.get(lease.seq)!;
    const name = `${row.company}/${row.reference}`;
    const isCurrent = row.claim?.token === lease.token;
    const { receipt } = result;
    if (result.settled !== (isCurrent && receipt?.outcome !== 'outdated'))
      this.violations.push(`IN-13 token ${lease.token} of ${name} settled: ${result.settled}`);
    if (!result.settled) return;
    const before = row.state;
    const { company, transactionId } = row;
    const stored = eventTypes.flatMap((type) => {
      const id = this.#once.get(`${company}/${transactionId}/${type}`);
      return id === undefined ? [] : [{ type, id }];
    });
    let mayStore = false;
    if (outcome.result === 'event') {
      const isSame = stored.some(({ type }) => type === event!.eventType);
      mayStore = isSame || stored.length === 0;
      if (mayStore === (result.result === 'contradiction'))
        this.violations.push(`EX-06 a poll of ${name} ended with ${result.result}`);
      if (mayStore && receipt !== null) this.received([event!], [receipt]);
      const id = mayStore ? receipt?.id : stored[0]!.id;
      if (isOpen(row) && id !== undefined) this.#fulfil(row, id, transactionId);
    } else if (outcome.next === 'overdue' && before === 'waiting') {
      if (stored.length > 0) this.#fulfil(row, stored[0]!.id, transactionId);
      else {
        row.state = 'overdue';
        mayStore = event !== null;
        if (receipt !== null) this.received([event!], [receipt]);
      }
    }
    if (mayStore !== (receipt !== null))
      this.violations.push(`EX-07 a poll of ${name} stored its event: ${!mayStore}`);
    if (result.state !== row.state)
      this.violations.push(`EX-05 ${name} is ${result.state}, not ${row.state}`);
    row.claim = null;
    const { next, againInMs = null } = outcome;
    row.scheduled = isOpen(row) && next !== 'end' && (next !== 'overdue' || againInMs !== null);
  }

  /** Compares the stored expectations with the model. Call this method when no operation is under way. */
  checkStored(expectations: readonly StoredExpectation[]): void {
    const is = expectations.map(({ company, reference, transactionId, state, fulfilled }) =>
      shown(company, reference, transactionId, state, fulfilled && describeFulfilment(fulfilled)),
    );
    const must = [...this.#rows.values()].map(
      ({ company, reference, transactionId, state, fulfilled }) =>
        shown(company, reference, transactionId, state, fulfilled && fulfilled.event),
    );
    const wrong = is.toSorted().join('; ');
    const right = must.toSorted().join('; ');
    if (wrong !== right) this.violations.push(`the expectations are ${wrong}, not ${right}`);
  }

  #runs({ claim }: ModelExpectation): boolean {
    return claim !== null && claim.until > this.#now();
  }

  #fulfil(row: ModelExpectation, id: string, transaction: string | null): void {
    row.fulfilled = { transaction, event: `${id} by ${this.#sources.get(`${row.company}/${id}`)}` };
    end(row, 'fulfilled');
  }
}

function isPolled(eventType: string): boolean {
  return POLLED_TYPES.some((type) => type === eventType);
}

function isOpen({ state }: ModelExpectation): boolean {
  return state === 'waiting' || state === 'overdue';
}

function end(row: ModelExpectation, state: ExpectationState): void {
  row.state = state;
  row.scheduled = false;
}

function describeFulfilment({ eventId, by }: NonNullable<StoredExpectation['fulfilled']>): string {
  return `${eventId} by ${by}`;
}

function shown(...parts: readonly (string | null)[]): string {
  return parts.join(' ');
}
