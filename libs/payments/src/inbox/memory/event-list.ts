import { toHistory } from '../store/stored-event.js';
import type {
  EventFilter,
  EventPage,
  InboxStore,
  StoredDelivery,
  StoredEvent,
} from '../store/inbox-store.js';
import type { EventIndex } from './event-index.js';
import { historyOf } from './memory-rows.js';
import type { DeliveryRow, EventRow } from './memory-rows.js';

type ToDate = (monotonicMs: number) => Date;

/** A page of the list. The cursor is the number of the last event in it. */
export function pageOf(
  events: EventIndex,
  { filter, order, limit, after }: Parameters<InboxStore['list']>[0],
  toDate: ToDate,
): EventPage {
  const rows = order === 'newest' ? [...events.all()].toReversed() : [...events.all()];
  const isAfter = ({ seq }: EventRow): boolean =>
    after === null || (order === 'newest' ? seq < Number(after) : seq > Number(after));
  const page = rows.filter((row) => isAfter(row) && matches(row, filter, events));
  const listed = page.slice(0, limit).map((row) => describeEvent(row, toDate, false));
  return { events: listed, next: page.length > limit ? String(page[limit - 1]!.seq) : null };
}

/** The event as `find()` returns it or, unless it is `whole`, as `list()` does. */
export function describeEvent(row: EventRow, toDate: ToDate, whole: boolean): StoredEvent {
  const deliveries = shown(row).map((delivery): StoredDelivery => ({
    handler: delivery.handler.name,
    state: delivery.state,
    attempts: delivery.attempts,
    lastError: delivery.lastError,
    dueAt: delivery.state === 'pending' ? toDate(delivery.dueAt) : null,
    finishedAt: delivery.finishedAt === null ? null : new Date(delivery.finishedAt),
    history: whole ? toHistory(historyOf(delivery)) : [],
  }));
  return {
    ...row.fixed,
    occurredAt: new Date(row.occurredMs),
    receivedAt: new Date(row.receivedMs),
    raw: whole && row.raw !== null ? Buffer.from(row.raw) : null,
    headers: whole ? { ...row.headers } : {},
    repeats: whole ? row.repeats : [],
    deliveries: deliveries.toSorted((a, b) => (a.handler < b.handler ? -1 : 1)),
  };
}

function matches(row: EventRow, filter: EventFilter, { undelivered }: EventIndex): boolean {
  const { company, ids, eventType, from, to, handler, state, search } = filter;
  const { fixed, receivedMs } = row;
  const inState = (): boolean => {
    if (state === 'unhandled' || state === 'stale') return undelivered[state].has(row);
    if (handler === undefined && state === undefined) return true;
    const states = shown(row).filter((one) => one.handler.name === (handler ?? one.handler.name));
    return states.some((one) => one.state === (state ?? one.state));
  };
  return (
    (company === undefined || fixed.company === company) &&
    (ids === undefined || ids.includes(fixed.id)) &&
    (eventType === undefined || fixed.eventType === eventType) &&
    (from === undefined || receivedMs >= from.getTime()) &&
    (to === undefined || receivedMs < to.getTime()) &&
    (search === undefined ||
      [fixed.id, fixed.eventType, fixed.orderingKey].some((text) => text?.includes(search))) &&
    inState()
  );
}

/** The deliveries that callers may see: none of a tombstone. */
function shown({ raw, deliveries }: EventRow): readonly DeliveryRow[] {
  return raw === null ? [] : deliveries;
}
