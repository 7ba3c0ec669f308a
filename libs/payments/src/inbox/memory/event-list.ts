import { toHistory } from '../delivery-history.js';
import type {
  EventFilter,
  EventPage,
  InboxStore,
  StoredDelivery,
  StoredEvent,
} from '../inbox-store.js';
import type { EventIndex } from './event-index.js';
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
  const listed = page.slice(0, limit).map((row) => {
    const event = describeEvent(row, toDate);
    const deliveries = event.deliveries.map((delivery) => ({ ...delivery, history: [] }));
    return { ...event, raw: null, headers: {}, repeats: [], deliveries };
  });
  return { events: listed, next: page.length > limit ? String(page[limit - 1]!.seq) : null };
}

/** The event as `find()` returns it. */
export function describeEvent(row: EventRow, toDate: ToDate): StoredEvent {
  const deliveries = shown(row).map((delivery): StoredDelivery => {
    const { state, attempts, lastError, dueAt, finishedAt, history } = delivery;
    return {
      handler: delivery.handler.name,
      state,
      attempts,
      lastError,
      dueAt: state === 'pending' ? toDate(dueAt) : null,
      finishedAt: finishedAt === null ? null : new Date(finishedAt),
      history: toHistory(history),
    };
  });
  return {
    ...row.fixed,
    repeats: row.repeats,
    raw: row.raw && Buffer.from(row.raw),
    headers: { ...row.headers },
    deliveries: deliveries.toSorted((a, b) => (a.handler < b.handler ? -1 : 1)),
  };
}

function matches(row: EventRow, filter: EventFilter, { undelivered }: EventIndex): boolean {
  const { company, ids, eventType, from, to, handler, state, search } = filter;
  const { fixed } = row;
  const isIn = (delivery: DeliveryRow): boolean =>
    (handler === undefined || delivery.handler.name === handler) &&
    (state === undefined || delivery.state === state);
  const inState = (): boolean => {
    if (state === 'unhandled' || state === 'stale') return undelivered[state].has(row);
    return (handler === undefined && state === undefined) || shown(row).some(isIn);
  };
  return (
    (company === undefined || fixed.company === company) &&
    (ids === undefined || ids.includes(fixed.id)) &&
    (eventType === undefined || fixed.eventType === eventType) &&
    (from === undefined || fixed.receivedAt >= from) &&
    (to === undefined || fixed.receivedAt < to) &&
    (search === undefined ||
      [fixed.id, fixed.eventType, fixed.orderingKey].some((text) => text?.includes(search))) &&
    inState()
  );
}

/** The deliveries that callers may see: none of a tombstone. */
function shown({ raw, deliveries }: EventRow): readonly DeliveryRow[] {
  return raw === null ? [] : deliveries;
}
