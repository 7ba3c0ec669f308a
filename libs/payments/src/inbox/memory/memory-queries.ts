import type {
  ActivityCounts,
  ActivityMinute,
  CappedCount,
  EventFilter,
  EventPage,
  ExpectationFilter,
  InboxStats,
  InboxStore,
  StoredDelivery,
  StoredEvent,
  StoredExpectation,
} from '../store/inbox-store.js';
import { parseCursor } from '../store/list-arguments.js';
import { COUNT_CAP, toHistory } from '../store/stored-event.js';
import type { EventIndex } from './event-index.js';
import type { HandlerQueue, MemoryEvent } from './memory-rows.js';
import { hasText, visibleDeliveries } from './memory-search.js';

const MINUTE_MS = 60_000;
const KEPT_MINUTES = 1440;
/** How long after its end a minute is closed. */
const CLOSING_MS = 10_000;
/** How many closed minutes are written again if the wall clock was set back. */
const REWRITTEN_MINUTES = 2;

/** Converts a time of the monotonic clock to a date. */
type ToDate = (monotonicMs: number) => Date;

/** A page of events. Its cursor is the `seq` of its last event. */
export function pageOf(
  events: EventIndex,
  { filter, order, limit, after }: Parameters<InboxStore['list']>[0],
  toDate: ToDate,
): EventPage {
  const rows = order === 'newest' ? [...events.all()].toReversed() : [...events.all()];
  const last = after === null ? null : parseSeq(after);
  const isAfter = ({ seq }: MemoryEvent): boolean =>
    last === null || (order === 'newest' ? seq < last : seq > last);
  const page = rows.filter((row) => isAfter(row) && matches(row, filter, events));
  const listed = page.slice(0, limit).map((row) => describeEvent(row, toDate, false));
  return { events: listed, next: page.length > limit ? String(page[limit - 1]!.seq) : null };
}

/** Reads the `next` of a page: the `seq` of its last event or expectation. */
export function parseSeq(next: string): number {
  return Number(parseCursor(next, /^\d{1,16}$/)[0]);
}

/** The event as `find()` returns it if `whole`, otherwise as `list()` returns it. */
export function describeEvent(row: MemoryEvent, toDate: ToDate, whole: boolean): StoredEvent {
  const deliveries = visibleDeliveries(row).map((delivery): StoredDelivery => ({
    handler: delivery.handler.name,
    state: delivery.state,
    attempts: delivery.attempts,
    lastError: delivery.lastError,
    dueAt: delivery.state === 'pending' ? toDate(delivery.dueAt) : null,
    finishedAt: delivery.finishedAt === null ? null : new Date(delivery.finishedAt),
    history: whole ? toHistory(delivery.history) : [],
  }));
  return {
    ...row.fixed,
    ...row.summary,
    occurredAt: new Date(row.occurredMs),
    receivedAt: new Date(row.receivedMs),
    raw: whole && row.raw !== null ? Buffer.from(row.raw) : null,
    headers: whole ? { ...row.headers } : {},
    repeats: whole ? row.repeats : [],
    deliveries: deliveries.toSorted((a, b) => (a.handler < b.handler ? -1 : 1)),
  };
}

function matches(row: MemoryEvent, filter: EventFilter, { undelivered }: EventIndex): boolean {
  const { company, ids, eventType, source, from, to, handler, state, search } = filter;
  const { fixed, receivedMs } = row;
  const hasState = (): boolean => {
    if (state === 'unhandled' || state === 'stale') return undelivered[state].has(row);
    if (handler === undefined && state === undefined) return true;
    return visibleDeliveries(row).some(
      (delivery) =>
        (handler === undefined || delivery.handler.name === handler) &&
        (state === undefined || delivery.state === state),
    );
  };
  return (
    (company === undefined || fixed.company === company) &&
    (ids === undefined || ids.includes(fixed.id)) &&
    (eventType === undefined || fixed.eventType === eventType) &&
    (source === undefined || fixed.source === source) &&
    (from === undefined || receivedMs >= from.getTime()) &&
    (to === undefined || receivedMs < to.getTime()) &&
    (search === undefined || hasText(row, search)) &&
    hasState()
  );
}

/** Whether the filter selects the expectation. */
export function matchesExpectation(
  row: Omit<StoredExpectation, 'nextPollAt' | 'ageMs'>,
  filter: ExpectationFilter,
): boolean {
  const { company, state, fulfilledBy, contradictory, from, to, search } = filter;
  const { reference, transactionId, createdAt, fulfilled, contradiction } = row;
  return (
    (company === undefined || row.company === company) &&
    (state === undefined || row.state === state) &&
    (filter.transactionId === undefined || transactionId === filter.transactionId) &&
    (fulfilledBy === undefined || fulfilled?.by === fulfilledBy) &&
    (contradictory !== true || contradiction !== null) &&
    (from === undefined || createdAt >= from) &&
    (to === undefined || createdAt < to) &&
    (search === undefined || [reference, transactionId].some((text) => text?.startsWith(search)))
  );
}

/** How many deliveries each handler has in each unfinished state. */
export function countDeliveries(handlers: Iterable<HandlerQueue>): InboxStats['deliveries'] {
  return [...handlers].flatMap(({ name: handler, counts }) =>
    (['pending', 'running', 'dead'] as const)
      .filter((state) => counts[state] > 0)
      .map((state) => ({ handler, state, ...capped(counts[state]) })),
  );
}

/** A count as `stats()` returns it. */
export function capped(count: number): CappedCount {
  return { count: Math.min(count, COUNT_CAP), more: count > COUNT_CAP };
}

/** A receipt or a finished attempt, which the activity of a minute counts. */
interface Occurrence {
  /** `null`: counts only in the total of all handlers. */
  readonly handler: string | null;
  readonly kind: 'received' | 'done' | 'failed' | 'dead';
  /** Milliseconds from receipt to `done`; 0 for other kinds. */
  readonly tookMs: number;
}

/** The activity of the closed minutes of a memory store. */
export class MemoryActivity {
  #minutes: ActivityMinute[] = [];
  /** End of the last minute that was written. */
  #end = -Infinity;

  /** Writes the minutes that were closed since the last call. `now` is on the wall clock, as all times here are. */
  summarize(rows: Iterable<MemoryEvent>, now: number): void {
    const end = startOf(now - CLOSING_MS);
    if (end < this.#end) this.#rewriteFrom(end - REWRITTEN_MINUTES * MINUTE_MS);
    const start = Math.max(this.#end, end - KEPT_MINUTES * MINUTE_MS);
    const byMinute = new Map<number, Occurrence[]>();
    for (let minute = start; minute < end; minute += MINUTE_MS) byMinute.set(minute, []);
    const add = (at: number, handler: string | null, kind: Occurrence['kind'], tookMs = 0) =>
      byMinute.get(startOf(at))?.push({ handler, kind, tookMs });
    for (const { receivedMs, deliveries } of rows) {
      add(receivedMs, null, 'received');
      for (const { handler, state, finishedAt, earlier } of deliveries) {
        add(receivedMs, handler.name, 'received');
        for (const [, startedMs, tookMs, outcome] of earlier) {
          if (outcome !== 'd') add(startedMs + Math.max(0, tookMs), handler.name, 'failed');
        }
        if (state !== 'done' && state !== 'dead') continue;
        add(finishedAt!, handler.name, state, Math.max(0, finishedAt! - receivedMs));
      }
    }
    for (const [minute, all] of byMinute) {
      const total = countsOf(all.filter(({ kind, handler }) => kind !== 'received' || !handler));
      const byHandler = Map.groupBy(all, ({ handler }) => handler ?? '');
      byHandler.delete('');
      const counts = [...byHandler].map(([handler, own]) => [handler, countsOf(own)]);
      const handlers = Object.fromEntries(counts) as ActivityMinute['handlers'];
      this.#minutes.push({ startsAt: new Date(minute), total, handlers });
    }
    this.#end = end;
    this.prune(now);
  }

  /** The last minutes that were written. */
  last(minutes: number): ActivityMinute[] {
    return this.#minutes.filter(({ startsAt }) => +startsAt >= this.#end - minutes * MINUTE_MS);
  }

  /** Deletes the minutes from `start` on after the wall clock was set back. summarize() writes them again when they are closed. */
  #rewriteFrom(start: number): void {
    this.#minutes = this.#minutes.filter(({ startsAt }) => startsAt.getTime() < start);
    this.#end = start;
  }

  /** Deletes minutes that are older than a day. */
  prune(now: number): void {
    const start = now - (KEPT_MINUTES + 2) * MINUTE_MS;
    this.#minutes = this.#minutes.filter(({ startsAt }) => startsAt.getTime() >= start);
  }
}

function countsOf(all: readonly Occurrence[]): ActivityCounts {
  const of = (kind: Occurrence['kind']) => all.filter((occurrence) => occurrence.kind === kind);
  const sorted = of('done')
    .map(({ tookMs }) => tookMs)
    .toSorted((a, b) => a - b);
  const nearestRank = (share: number) => sorted[Math.ceil(share * sorted.length) - 1] ?? null;
  const [p50Ms, p95Ms] = [nearestRank(0.5), nearestRank(0.95)];
  const [received, failed, dead] = [of('received').length, of('failed').length, of('dead').length];
  return { received, done: sorted.length, failed, dead, p50Ms, p95Ms };
}

function startOf(ms: number): number {
  return Math.floor(ms / MINUTE_MS) * MINUTE_MS;
}
