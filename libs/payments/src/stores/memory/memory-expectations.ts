import { PaymentsError } from '../../errors/payments-error.js';
import type { PaymentsRuntime } from '../../runtime/payments-runtime.js';
import {
  isOpen,
  POLL_HANDLER,
  pollChange,
  settledPoll,
} from '../../inbox/store/expectation-store.js';
import type {
  CancelReason,
  ClaimedPoll,
  ExpectationFilter,
  ExpectationName,
  ExpectationStore,
  FulfilledExpectation,
  IncomingEvent,
  PollLease,
  RequestState,
  StoredExpectation,
  StoreReceipt,
} from '../../inbox/store/inbox-store.js';
import { capped } from '../../inbox/store/stored-event.js';
import { keyOf, PriorityQueue } from './memory-events.js';
import type { EventIndex, Queued } from './memory-events.js';
import { beginsWith, pageOf } from './memory-queries.js';

const FULL =
  'The memory inbox is full of expectations that are waiting for an event. Raise "maxEvents", cancel expectations ' +
  'that are not needed any more, or keep the inbox in a database.';

const UNSUPPORTED =
  'The memory inbox has no transactions. Call expect() without "tx", or keep the inbox in the database of the ' +
  'application.';

type Mutable<T> = { -readonly [Key in keyof T]: T[Key] };

/** An expectation in the memory store. Times in milliseconds are on the monotonic clock. */
interface Row extends Queued<Row> {
  readonly seq: number;
  /** The expectation. `request`, `ageMs` and `nextPollAt` are computed when the expectation is read. */
  readonly stored: Mutable<StoredExpectation>;
  readonly createdMs: number;
  /**
   * The time when the next poll is due or, while a poll is leased, when the lease ends. A row without a scheduled poll
   * is in no queue.
   */
  pollMs: number;
  leased: boolean;
  token: number;
  fulfilledTransaction: string | null;
  request: Exclude<RequestState, 'running'> | { readonly token: number; readonly endsMs: number };
}

export interface MemoryExpectations extends ExpectationStore {
  /** Fulfils the open expectations that match an event. `stored` is this event, or the first stored copy of it. */
  fulfil(event: IncomingEvent, stored: IncomingEvent): FulfilledExpectation[];
  prune(tombstonesMs: number, limit: number): number;
}

export function memoryExpectations(
  events: EventIndex,
  paused: ReadonlyMap<string, unknown>,
  receive: (event: IncomingEvent) => StoreReceipt,
  maxRows: number,
  runtime: PaymentsRuntime,
): MemoryExpectations {
  /** The expectations by company and reference, in the order of creation. */
  const rows = new Map<string, Row>();
  const bySeq = new Map<number, Row>();
  const byTransaction = new Map<string, Set<Row>>();
  const polls = new PriorityQueue<Row>((a, b) => a.pollMs < b.pollMs);
  let lastSeq = 0;
  let lastToken = 0;

  const isPaused = (): boolean => paused.has('*') || paused.has(POLL_HANDLER);

  const rowOf = ({ company, reference }: ExpectationName): Row | undefined =>
    rows.get(keyOf(company, reference));

  function leasedBy({ seq, token }: PollLease): Row | undefined {
    const row = bySeq.get(seq);
    return row?.leased && row.token === token ? row : undefined;
  }

  function requestOf({ stored, request }: Row): RequestState {
    if (stored.transactionId !== null) return 'accepted';
    if (typeof request !== 'object') return request;
    return request.endsMs > runtime.monotonic() ? 'running' : 'unknown';
  }

  function setTransaction(row: Row, transactionId: string): void {
    row.stored.transactionId = transactionId;
    const key = keyOf(row.stored.company, transactionId);
    byTransaction.set(key, (byTransaction.get(key) ?? new Set()).add(row));
  }

  /** Schedules the next poll in `inMs` milliseconds. With `null`, schedules no poll. */
  function schedule(row: Row, inMs: number | null): void {
    row.queue?.delete(row);
    if (inMs === null) return;
    row.pollMs = runtime.monotonic() + inMs;
    polls.add(row);
  }

  /** Makes an expectation fulfilled or cancelled, and removes its next poll. A running poll keeps its lease. */
  function end(row: Row, state: 'fulfilled' | 'cancelled'): void {
    row.stored.state = state;
    if (!row.leased) schedule(row, null);
  }

  function cancel(row: Row, { by = null, note = null }: Partial<CancelReason> = {}): void {
    row.stored.cancelled = { at: new Date(runtime.now()), by, note };
    end(row, 'cancelled');
  }

  function fulfilBy(
    row: Row,
    { id: eventId, source: by, eventType, orderingKey }: IncomingEvent,
  ): void {
    row.stored.fulfilled = { at: new Date(runtime.now()), by, eventId, eventType };
    row.fulfilledTransaction = orderingKey;
    end(row, 'fulfilled');
  }

  function forget(row: Row): void {
    schedule(row, null);
    rows.delete(keyOf(row.stored.company, row.stored.reference));
    bySeq.delete(row.seq);
    const key = keyOf(row.stored.company, `${row.stored.transactionId}`);
    const others = byTransaction.get(key);
    others?.delete(row);
    if (others?.size === 0) byTransaction.delete(key);
  }

  function makeRoom(): void {
    if (rows.size < maxRows) return;
    const all = [...rows.values()];
    const oldest =
      all.find(({ stored }) => !isOpen(stored.state)) ??
      all.find(({ stored }) => stored.state === 'overdue');
    if (oldest === undefined) throw new PaymentsError('inbox_full', FULL);
    forget(oldest);
  }

  function eventsOf({ stored }: Row, types: readonly string[]): IncomingEvent[] {
    const { company, transactionId } = stored;
    if (transactionId === null) return [];
    return types.flatMap((type) => events.findOnce(company, type, transactionId)?.event ?? []);
  }

  function describe(row: Row): StoredExpectation {
    const { stored, createdMs, queue, leased, pollMs } = row;
    const [now, wallMs] = [runtime.monotonic(), runtime.now()];
    const nextPollAt = queue === null || leased ? null : new Date(wallMs + pollMs - now);
    return { ...stored, request: requestOf(row), ageMs: now - createdMs, nextPollAt };
  }

  return {
    async expect(expectation, tx) {
      if (tx !== undefined) throw new TypeError(UNSUPPORTED);
      const known = rowOf(expectation);
      if (known !== undefined && known.stored.state !== 'cancelled') return false;
      if (known !== undefined) forget(known);
      else makeRoom();
      const { company, reference, transactionId, dueInMs, firstPollInMs } = expectation;
      const createdAt = new Date(runtime.now());
      const row: Row = {
        seq: (lastSeq += 1),
        pollMs: 0,
        leased: false,
        token: 0,
        fulfilledTransaction: null,
        queue: null,
        position: 0,
        stored: {
          company,
          reference,
          transactionId: null,
          request: 'never',
          state: 'waiting',
          createdAt,
          ageMs: 0,
          dueBy: dueInMs === null ? null : new Date(createdAt.getTime() + dueInMs),
          schedule: [...expectation.schedule],
          nextPollAt: null,
          polls: 0,
          lostPolls: 0,
          lastPoll: null,
          fulfilled: null,
          cancelled: null,
          contradiction: null,
          otherEventId: null,
        },
        createdMs: runtime.monotonic(),
        // A running request of the cancelled expectation continues.
        request: typeof known?.request === 'object' ? known.request : 'never',
      };
      rows.set(keyOf(company, reference), row);
      bySeq.set(row.seq, row);
      if (transactionId !== null) setTransaction(row, transactionId);
      schedule(row, firstPollInMs);
      return true;
    },

    async attach(company, reference, transactionId) {
      const row = rowOf({ company, reference });
      if (row === undefined) return 'unknown';
      const { stored, fulfilledTransaction } = row;
      if (stored.state === 'cancelled') return 'cancelled';
      if (stored.transactionId !== null) {
        return stored.transactionId === transactionId ? 'attached' : 'conflict';
      }
      const others = byTransaction.get(keyOf(company, transactionId)) ?? new Set<Row>();
      if ([...others].some((one) => one.stored.state !== 'cancelled')) return 'conflict';
      stored.lostPolls = 0;
      setTransaction(row, transactionId);
      const other = fulfilledTransaction === transactionId ? null : stored.fulfilled;
      if (other !== null) {
        Object.assign(stored, { state: 'waiting', otherEventId: other.eventId, fulfilled: null });
        row.fulfilledTransaction = null;
      }
      if ((other !== null || stored.state === 'overdue') && !row.leased) schedule(row, 0);
      return 'attached';
    },

    async cancel(company, reference, reason) {
      const row = rowOf({ company, reference });
      if (row === undefined || !isOpen(row.stored.state)) return false;
      cancel(row, reason);
      return true;
    },

    async startRequest(company, reference, leaseMs) {
      const row = rowOf({ company, reference });
      if (row === undefined) return undefined;
      const previous = requestOf(row);
      const granted = isOpen(row.stored.state) && previous !== 'running' && previous !== 'accepted';
      const token = granted ? (lastToken += 1) : null;
      if (token !== null) row.request = { token, endsMs: runtime.monotonic() + leaseMs };
      return { expectation: describe(row), previous, token };
    },

    async endRequest(name, token, outcome) {
      const row = rowOf(name);
      if (typeof row?.request !== 'object' || row.request.token !== token) return false;
      row.request = outcome === 'cancelled' ? 'never' : outcome;
      const { state, transactionId } = row.stored;
      const cancels = outcome === 'cancelled' && state === 'waiting' && transactionId === null;
      if (cancels) cancel(row);
      return true;
    },

    async find(company, reference) {
      const row = rowOf({ company, reference });
      return row && describe(row);
    },

    async list({ filter, ...query }) {
      const isListed = ({ stored }: Row) => matches(stored, filter);
      const { page, next } = pageOf(rows.values(), isListed, { order: 'newest', ...query });
      return { expectations: page.map((row) => describe(row)), next };
    },

    async claimPolls({ limit, leaseMs }) {
      const claimed: ClaimedPoll[] = [];
      const now = runtime.monotonic();
      while (claimed.length < limit && !isPaused()) {
        const row = polls.first;
        if (row === undefined || row.pollMs > now) break;
        if (row.leased) row.stored.lostPolls += 1;
        row.leased = true;
        row.token += 1;
        schedule(row, leaseMs);
        claimed.push({ seq: row.seq, token: row.token, expectation: describe(row) });
      }
      return claimed;
    },

    async releasePolls(leases, dueInMs) {
      for (const [index, lease] of leases.entries()) {
        const row = leasedBy(lease);
        if (row === undefined) continue;
        row.leased = false;
        schedule(row, row.stored.state === 'cancelled' ? null : dueInMs[index]!);
      }
    },

    async settlePoll(settlement) {
      const { lease, outcome, eventTypes, keepLost } = settlement;
      const row = leasedBy(lease);
      const known = row === undefined ? [] : eventsOf(row, eventTypes);
      const before = row?.stored.state ?? 'waiting';
      const change = pollChange(settlement, before, known);
      if (row === undefined) return settledPoll(change, before, undefined);
      const receipt = change.event && receive(change.event);
      if (receipt?.outcome === 'outdated') return settledPoll(change, before, undefined, receipt);
      const { stored } = row;
      const id = change.storedId ?? (outcome.result === 'event' ? receipt!.id : null);
      if (id !== null && isOpen(before)) fulfilBy(row, events.find(stored.company, id)!.event);
      const { result, detail } = change;
      if (result === 'contradiction') stored.contradiction = detail;
      stored.polls += 1;
      if (!keepLost) stored.lostPolls = 0;
      stored.lastPoll = { at: new Date(runtime.now()), result, detail };
      if (outcome.next === 'overdue' && stored.state === 'waiting') stored.state = 'overdue';
      row.leased = false;
      const settled = settledPoll(change, before, stored.state, receipt);
      schedule(row, settled.nextPollInMs);
      return settled;
    },

    async pollNow(selections, dueInMs) {
      const now = runtime.monotonic();
      let changed = 0;
      for (const [index, name] of selections.entries()) {
        const row = rowOf(name);
        if (row === undefined || row.stored.state === 'cancelled') continue;
        if (row.leased && row.pollMs > now) continue;
        row.leased = false;
        row.stored.lostPolls = Math.min(row.stored.lostPolls, 2);
        const inMs = dueInMs[index] ?? 0;
        if (row.queue === null || row.pollMs > now + inMs) schedule(row, inMs);
        changed += 1;
      }
      return changed;
    },

    async nextPollInMs() {
      const next = isPaused() ? undefined : polls.first;
      return next === undefined ? null : next.pollMs - runtime.monotonic();
    },

    async counts() {
      const count = (filter: ExpectationFilter) =>
        capped([...rows.values()].filter(({ stored }) => matches(stored, filter)).length);
      return {
        waiting: count({ state: 'waiting' }),
        overdueUnpaid: count({ overdue: 'unpaid' }),
        overdueUnknown: count({ overdue: 'unknown' }),
      };
    },

    fulfil({ company, orderingKey, reference }, stored) {
      if (rows.size === 0) return [];
      const found = new Set(
        orderingKey === null ? [] : byTransaction.get(keyOf(company, orderingKey)),
      );
      const named = reference === null ? undefined : rowOf({ company, reference });
      if (named !== undefined) {
        const { transactionId, state } = named.stored;
        const own = transactionId ?? named.fulfilledTransaction;
        if (transactionId === null && isOpen(state)) found.add(named);
        else if (own !== null && own !== orderingKey && state !== 'cancelled') {
          named.stored.otherEventId = stored.id;
        }
      }
      const open = [...found].filter((row) => isOpen(row.stored.state));
      for (const row of open) fulfilBy(row, stored);
      return open.map((row) => {
        const { reference, transactionId } = row.stored;
        return { reference, transactionId, by: stored.source };
      });
    },

    prune(tombstonesMs, limit) {
      const before = runtime.now() - tombstonesMs;
      const old = [...rows.values()].filter((row) => {
        const { createdAt, fulfilled, state } = row.stored;
        return !isOpen(state) && Math.max(+createdAt, +(fulfilled?.at ?? 0)) < before;
      });
      const pruned = old.slice(0, limit);
      for (const row of pruned) forget(row);
      return pruned.length;
    },
  };
}

function matches(row: StoredExpectation, filter: ExpectationFilter): boolean {
  const { company, state, overdue, fulfilledBy, contradictory, from, to, search } = filter;
  const { reference, transactionId, createdAt, fulfilled, contradiction, lastPoll } = row;
  const result = overdue === 'unpaid' ? 'pending' : 'unknown';
  return (
    (company === undefined || row.company === company) &&
    (state === undefined || row.state === state) &&
    (overdue === undefined || (row.state === 'overdue' && lastPoll?.result === result)) &&
    (filter.transactionId === undefined || transactionId === filter.transactionId) &&
    (fulfilledBy === undefined || fulfilled?.by === fulfilledBy) &&
    (contradictory !== true || contradiction !== null) &&
    (from === undefined || createdAt >= from) &&
    (to === undefined || createdAt < to) &&
    (search === undefined ||
      beginsWith(reference, search) ||
      transactionId?.startsWith(search) === true)
  );
}
