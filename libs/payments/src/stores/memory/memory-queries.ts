import { setImmediate } from 'node:timers/promises';
import { minuteOf } from '../../inbox/store/activity.js';
import type { ActivityPart, countActivity } from '../../inbox/store/activity.js';
import type {
  EventFilter,
  EventPage,
  ExpectationFilter,
  InboxStats,
  InboxStore,
  StoredDelivery,
  StoredEvent,
  StoredExpectation,
} from '../../inbox/store/inbox-store.js';
import { parseSeq } from '../../inbox/store/list-arguments.js';
import { capped, toHistory } from '../../inbox/store/stored-event.js';
import type { EventIndex } from './event-index.js';
import type { HandlerQueue, MemoryEvent } from './memory-rows.js';
import { hasText, visibleDeliveries } from './memory-search.js';

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

/** How many events one slice has. */
const SLICE = 5000;

/** Reads the slices of {@link countActivity}, the newest first. Receives run between two slices. */
export function activitySlices(events: EventIndex): Parameters<typeof countActivity>[3] {
  const rows = [...events.all()];
  return async () => {
    const slice = rows.splice(-SLICE);
    if (rows.length > 0) await setImmediate();
    const oldest = slice[0] ?? null;
    return {
      parts: slice.flatMap(partsOf),
      events: slice.length,
      oldest: oldest && { seq: oldest.seq, receivedMs: oldest.receivedMs },
    };
  };
}

function partsOf(row: MemoryEvent): ActivityPart[] {
  const { receivedMs } = row;
  const part = (at: number, handler: string, counts: Partial<ActivityPart>): ActivityPart => ({
    received: 0,
    failed: 0,
    dead: 0,
    tookMs: [],
    ...counts,
    minute: minuteOf(at),
    handler,
  });
  const parts = [part(receivedMs, '', { received: 1 })];
  for (const { handler, state, finishedAt, earlier } of visibleDeliveries(row)) {
    const { name } = handler;
    parts.push(part(receivedMs, name, { received: 1 }));
    for (const [, startedMs, tookMs, outcome] of earlier) {
      if (outcome !== 'd') parts.push(part(startedMs + Math.max(0, tookMs), name, { failed: 1 }));
    }
    const tookMs = Math.max(0, finishedAt! - receivedMs);
    if (state === 'done') parts.push(part(finishedAt!, name, { tookMs: [tookMs] }));
    else if (state === 'dead') parts.push(part(finishedAt!, name, { dead: 1 }));
  }
  return parts;
}
