import { PaymentsError } from '../../errors/payments-error.js';
import type { PaymentsRuntime } from '../../runtime/payments-runtime.js';
import { contradictionDetail, POLL_HANDLER } from '../../inbox/store/expectation-store.js';
import type {
  ClaimedPoll,
  ExpectationName,
  ExpectationPage,
  ExpectationStore,
  FulfilledExpectation,
  IncomingEvent,
  NewExpectation,
  PollLease,
  PollSettlement,
  RequestState,
  SettledPoll,
  StartedRequest,
  StoredExpectation,
  StoreReceipt,
} from '../../inbox/store/inbox-store.js';
import { boundedError, capped } from '../../inbox/store/stored-event.js';
import { parseSeq } from '../../inbox/store/list-arguments.js';
import { matchesExpectation } from './memory-queries.js';
import type { MemoryEvent } from './memory-rows.js';

const FULL =
  'The memory inbox is full of expectations that are waiting for an event. Raise "maxEvents", cancel expectations ' +
  'that are not needed any more, or keep the inbox in a database.';

type Mutable<T> = { -readonly [Key in keyof T]: T[Key] };

/** An expectation in the memory store. Times in milliseconds are on the monotonic clock. */
interface MemoryExpectation extends Mutable<Omit<StoredExpectation, 'nextPollAt' | 'ageMs'>> {
  readonly seq: number;
  readonly createdMs: number;
  /** When the next poll is due or, while one is leased, when its lease ends; `null` if none is scheduled. */
  nextPollMs: number | null;
  leased: boolean;
  token: number;
  /** The transaction of the event that fulfilled it. */
  fulfilledTransaction: string | null;
  request:
    | 'never'
    | 'answered'
    | 'unknown'
    | 'accepted'
    | { readonly token: number; readonly endsMs: number };
}

/** What the expectations use of the store of the events. */
interface Events {
  readonly paused: ReadonlySet<string>;
  /** Stores an event; see `InboxStore.receive`. */
  receiveNow(event: IncomingEvent): StoreReceipt;
  find(company: string, id: string): MemoryEvent | undefined;
  /** The event of that type that is stored for the transaction. */
  findOnce(company: string, eventType: string, transactionId: string): MemoryEvent | undefined;
  wake(): void;
}

/** The expectations of a memory store. */
export class MemoryExpectations implements ExpectationStore {
  /** By company and reference, in the order of creation. */
  readonly #rows = new Map<string, MemoryExpectation>();
  /** By seq. */
  readonly #bySeq = new Map<number, MemoryExpectation>();
  readonly #byTransaction = new Map<string, Set<MemoryExpectation>>();
  #seq = 0;
  #token = 0;

  constructor(
    private readonly events: Events,
    private readonly maxRows: number,
    private readonly runtime: PaymentsRuntime,
  ) {}

  async expect(expectation: NewExpectation, tx?: unknown): Promise<boolean> {
    if (tx !== undefined) {
      throw new TypeError(
        'The memory inbox has no transactions: call expect() without "tx", or keep the inbox in the database of the ' +
          'application.',
      );
    }
    const known = this.#find(expectation);
    if (known !== undefined && known.state !== 'cancelled') return false;
    if (known !== undefined) this.#forget(known);
    else this.#makeRoom();
    const { company, reference, transactionId, dueInMs, schedule, firstPollInMs } = expectation;
    const [createdAt, createdMs] = [new Date(this.runtime.now()), this.runtime.monotonic()];
    const row: MemoryExpectation = {
      seq: (this.#seq += 1),
      company,
      reference,
      transactionId: null,
      dueBy: dueInMs === null ? null : new Date(createdAt.getTime() + dueInMs),
      schedule: [...schedule],
      state: 'waiting',
      createdAt,
      createdMs,
      polls: 0,
      lostPolls: 0,
      lastPoll: null,
      fulfilled: null,
      fulfilledTransaction: null,
      contradiction: null,
      otherEventId: null,
      nextPollMs: createdMs + firstPollInMs,
      leased: false,
      token: 0,
      // A request that runs for the cancelled expectation goes on.
      request: typeof known?.request === 'object' ? known.request : 'never',
    };
    this.#rows.set(keyOf(row), row);
    this.#bySeq.set(row.seq, row);
    if (transactionId !== null) this.#setTransaction(row, transactionId);
    this.events.wake();
    return true;
  }

  async attach(
    ...[company, reference, transactionId]: Parameters<ExpectationStore['attach']>
  ): ReturnType<ExpectationStore['attach']> {
    const row = this.#find({ company, reference });
    if (row === undefined) return 'unknown';
    if (row.state === 'cancelled') return 'cancelled';
    if (row.transactionId !== null) {
      return row.transactionId === transactionId ? 'attached' : 'conflict';
    }
    this.#setTransaction(row, transactionId);
    const { fulfilled } = row;
    const isOther = fulfilled !== null && row.fulfilledTransaction !== transactionId;
    if (isOther) {
      row.state = 'waiting';
      row.otherEventId = fulfilled.eventId;
      row.fulfilled = null;
      row.fulfilledTransaction = null;
    }
    if ((isOther || row.state === 'overdue') && !row.leased) {
      row.nextPollMs = this.runtime.monotonic();
      this.events.wake();
    }
    return 'attached';
  }

  async cancel(company: string, reference: string): Promise<boolean> {
    const row = this.#find({ company, reference });
    if (row === undefined || !isOpen(row)) return false;
    this.#end(row, 'cancelled');
    return true;
  }

  async startRequest(
    ...[company, reference, leaseMs]: Parameters<ExpectationStore['startRequest']>
  ): Promise<StartedRequest | undefined> {
    const row = this.#find({ company, reference });
    if (row === undefined) return undefined;
    const previous = this.#requestOf(row);
    const granted = isOpen(row) && previous !== 'running' && previous !== 'accepted';
    const token = granted ? (this.#token += 1) : null;
    if (token !== null) row.request = { token, endsMs: this.runtime.monotonic() + leaseMs };
    return { expectation: this.#describe(row), previous, token };
  }

  async endRequest(
    ...[name, token, end]: Parameters<ExpectationStore['endRequest']>
  ): Promise<boolean> {
    const row = this.#find(name);
    if (typeof row?.request !== 'object' || row.request.token !== token) return false;
    row.request = end === 'cancelled' ? 'never' : end;
    if (end === 'cancelled' && row.state === 'waiting' && row.transactionId === null) {
      this.#end(row, 'cancelled');
    }
    return true;
  }

  async find(company: string, reference: string): Promise<StoredExpectation | undefined> {
    const row = this.#find({ company, reference });
    return row && this.#describe(row);
  }

  async list({
    filter,
    limit,
    after,
  }: Parameters<ExpectationStore['list']>[0]): Promise<ExpectationPage> {
    const before = after === null ? Infinity : parseSeq(after);
    const rows = [...this.#rows.values()].toReversed();
    const page = rows.filter((row) => row.seq < before && matchesExpectation(row, filter));
    return {
      expectations: page.slice(0, limit).map((row) => this.#describe(row)),
      next: page.length > limit ? String(page[limit - 1]!.seq) : null,
    };
  }

  async claimPolls({
    limit,
    leaseMs,
  }: Parameters<ExpectationStore['claimPolls']>[0]): Promise<ClaimedPoll[]> {
    if (this.#paused) return [];
    const now = this.runtime.monotonic();
    // The first `limit` polls in their order: to sort all that are due takes too long if there are thousands.
    const due: MemoryExpectation[] = [];
    for (const row of this.#rows.values()) {
      if (row.nextPollMs === null || row.nextPollMs > now) continue;
      const index = due.findLastIndex(({ nextPollMs }) => nextPollMs! <= row.nextPollMs!) + 1;
      if (index < limit) due.splice(index, 0, row);
      if (due.length > limit) due.pop();
    }
    return due.map((row) => {
      if (row.leased) row.lostPolls += 1;
      row.leased = true;
      row.token += 1;
      row.nextPollMs = now + leaseMs;
      return { seq: row.seq, token: row.token, expectation: this.#describe(row) };
    });
  }

  async releasePolls(leases: readonly PollLease[], dueInMs: readonly number[]): Promise<void> {
    for (const [index, lease] of leases.entries()) {
      const row = this.#leased(lease);
      if (row === undefined) continue;
      row.leased = false;
      row.nextPollMs =
        row.state === 'cancelled' ? null : this.runtime.monotonic() + dueInMs[index]!;
    }
    this.events.wake();
  }

  async settlePoll(settlement: PollSettlement): Promise<SettledPoll> {
    const { lease, outcome, event, eventTypes, keepLost } = settlement;
    const row = this.#leased(lease);
    if (row === undefined) return notSettled('waiting', outcome, null);
    const before = row.state;
    const line = outcome.detail === null ? null : boundedError(outcome.detail);
    let recorded: Pick<SettledPoll, 'result' | 'detail'> = { result: outcome.result, detail: line };
    let receipt: StoreReceipt | null = null;
    const { transactionId } = row;
    const stored =
      transactionId === null
        ? []
        : eventTypes.flatMap(
            (type) => this.events.findOnce(row.company, type, transactionId) ?? [],
          );
    const isOverdue = outcome.next === 'overdue' && before === 'waiting';
    if (outcome.result === 'event') {
      const isSame = stored.some(({ fixed }) => fixed.eventType === event!.eventType);
      const [rival] = isSame ? [] : stored;
      if (rival === undefined) receipt = this.events.receiveNow(event!);
      else {
        const detail = boundedError(contradictionDetail(event!.eventType, rival.fixed));
        recorded = { result: 'contradiction', detail };
        row.contradiction = detail;
        if (isOpen(row)) this.#fulfil(row, rival);
      }
    } else if (isOverdue && stored[0] !== undefined) this.#fulfil(row, stored[0]);
    else if (isOverdue && event !== null) receipt = this.events.receiveNow(event);
    if (receipt?.outcome === 'outdated') return notSettled(before, outcome, receipt);
    if (receipt !== null && outcome.result === 'event' && isOpen(row)) {
      this.#fulfil(row, this.events.find(row.company, receipt.id)!);
    }
    row.polls += 1;
    if (!keepLost) row.lostPolls = 0;
    row.lastPoll = { at: new Date(this.runtime.now()), ...recorded };
    row.leased = false;
    row.nextPollMs = null;
    if (row.state === 'waiting' && isOverdue) row.state = 'overdue';
    if (row.state === 'waiting' && typeof outcome.next === 'number') {
      row.nextPollMs = this.runtime.monotonic() + outcome.next;
    }
    const { state, nextPollMs } = row;
    const nextPollInMs = nextPollMs === null ? null : (outcome.next as number);
    return { settled: true, ...recorded, state, changed: state !== before, nextPollInMs, receipt };
  }

  async pollNow(
    ...[selections, dueInMs]: Parameters<ExpectationStore['pollNow']>
  ): Promise<number> {
    const now = this.runtime.monotonic();
    let changed = 0;
    for (const [index, name] of selections.entries()) {
      const row = this.#find(name);
      if (row === undefined || row.state === 'cancelled') continue;
      if (row.leased && row.nextPollMs! > now) continue;
      row.leased = false;
      row.lostPolls = Math.min(row.lostPolls, 2);
      row.nextPollMs = Math.min(row.nextPollMs ?? Infinity, now + (dueInMs[index] ?? 0));
      changed += 1;
    }
    if (changed > 0) this.events.wake();
    return changed;
  }

  async nextPollInMs(): Promise<number | null> {
    if (this.#paused) return null;
    let next = Infinity;
    for (const { nextPollMs } of this.#rows.values()) next = Math.min(next, nextPollMs ?? Infinity);
    return next === Infinity ? null : next - this.runtime.monotonic();
  }

  async counts(): ReturnType<ExpectationStore['counts']> {
    let [waiting, unpaid, unknown] = [0, 0, 0];
    for (const { state, lastPoll } of this.#rows.values()) {
      if (state === 'waiting') waiting += 1;
      else if (state === 'overdue' && lastPoll?.result === 'pending') unpaid += 1;
      else if (state === 'overdue') unknown += 1;
    }
    return {
      waiting: capped(waiting),
      overdueUnpaid: capped(unpaid),
      overdueUnknown: capped(unknown),
    };
  }

  /** Fulfils the open expectations of an event that was received. `stored` is the event, or the first copy of it. */
  fulfil(
    {
      company,
      orderingKey,
      reference,
    }: Pick<IncomingEvent, 'company' | 'orderingKey' | 'reference'>,
    stored: MemoryEvent,
  ): FulfilledExpectation[] {
    const rows = new Set<MemoryExpectation>();
    if (orderingKey !== null) {
      for (const row of this.#byTransaction.get(`${company}\n${orderingKey}`) ?? []) rows.add(row);
    }
    const named = reference === null ? undefined : this.#find({ company, reference });
    if (named !== undefined) {
      const own = named.transactionId ?? named.fulfilledTransaction;
      if (named.transactionId === null && isOpen(named)) rows.add(named);
      else if (own !== null && own !== orderingKey && named.state !== 'cancelled') {
        named.otherEventId = stored.fixed.id;
      }
    }
    const open = [...rows].filter(isOpen);
    for (const row of open) this.#fulfil(row, stored);
    const by = stored.fixed.source;
    return open.map((row) => ({ reference: row.reference, transactionId: row.transactionId, by }));
  }

  /** See `InboxStore.prune`. */
  prune(tombstonesMs: number, limit: number): number {
    const before = this.runtime.now() - tombstonesMs;
    const old = [...this.#rows.values()].filter(
      (row) =>
        !isOpen(row) &&
        Math.max(row.createdAt.getTime(), row.fulfilled?.at.getTime() ?? 0) < before,
    );
    const pruned = old.slice(0, limit);
    for (const row of pruned) this.#forget(row);
    return pruned.length;
  }

  get #paused(): boolean {
    return this.events.paused.has('*') || this.events.paused.has(POLL_HANDLER);
  }

  #find(name: ExpectationName): MemoryExpectation | undefined {
    return this.#rows.get(keyOf(name));
  }

  #leased({ seq, token }: PollLease): MemoryExpectation | undefined {
    const row = this.#bySeq.get(seq);
    return row?.leased && row.token === token ? row : undefined;
  }

  #requestOf({ transactionId, request }: MemoryExpectation): RequestState {
    if (transactionId !== null) return 'accepted';
    if (typeof request !== 'object') return request;
    return request.endsMs > this.runtime.monotonic() ? 'running' : 'unknown';
  }

  #setTransaction(row: MemoryExpectation, transactionId: string): void {
    row.transactionId = transactionId;
    const key = `${row.company}\n${transactionId}`;
    this.#byTransaction.set(key, (this.#byTransaction.get(key) ?? new Set()).add(row));
  }

  #fulfil(row: MemoryExpectation, { fixed }: MemoryEvent): void {
    const { id: eventId, source: by, eventType, orderingKey } = fixed;
    row.fulfilled = { at: new Date(this.runtime.now()), by, eventId, eventType };
    row.fulfilledTransaction = orderingKey;
    this.#end(row, 'fulfilled');
  }

  /** Ends an expectation without a next poll. A poll that runs keeps its lease. */
  #end(row: MemoryExpectation, state: 'fulfilled' | 'cancelled'): void {
    row.state = state;
    if (!row.leased) row.nextPollMs = null;
  }

  #forget(row: MemoryExpectation): void {
    this.#rows.delete(keyOf(row));
    this.#bySeq.delete(row.seq);
    const key = `${row.company}\n${row.transactionId}`;
    const rows = this.#byTransaction.get(key);
    rows?.delete(row);
    if (rows?.size === 0) this.#byTransaction.delete(key);
  }

  /** Forgets the oldest ended expectation, or else the oldest overdue one, if the store is full. */
  #makeRoom(): void {
    if (this.#rows.size < this.maxRows) return;
    const rows = [...this.#rows.values()];
    const oldest =
      rows.find((row) => !isOpen(row)) ?? rows.find(({ state }) => state === 'overdue');
    if (oldest === undefined) throw new PaymentsError('inbox_full', FULL);
    this.#forget(oldest);
  }

  #describe(row: MemoryExpectation): StoredExpectation {
    const { seq: _, createdMs, nextPollMs, leased, token: _t, request: _r, ...fields } = row;
    const { fulfilledTransaction: _f, ...stored } = fields;
    const [now, wallMs] = [this.runtime.monotonic(), this.runtime.now()];
    const nextPollAt = nextPollMs === null || leased ? null : new Date(wallMs + nextPollMs - now);
    return { ...stored, ageMs: now - createdMs, nextPollAt };
  }
}

function notSettled(
  state: SettledPoll['state'],
  { result, detail }: PollSettlement['outcome'],
  receipt: StoreReceipt | null,
): SettledPoll {
  return { settled: false, result, detail, state, changed: false, nextPollInMs: null, receipt };
}

function isOpen({ state }: MemoryExpectation): boolean {
  return state === 'waiting' || state === 'overdue';
}

function keyOf({ company, reference }: ExpectationName): string {
  return `${company}\n${reference}`;
}
