import type { EventFilter, EventPage, InboxStore } from '../inbox-store.js';
import { listedEvent } from './memory-rows.js';
import type { EventRow } from './memory-rows.js';
import type { MemoryEvents } from './memory-events.js';

/** A page of the list. The cursor is the number of the last event in it. */
export function pageOf(
  events: MemoryEvents,
  { filter, order, limit, after }: Parameters<InboxStore['list']>[0],
  toDate: (monotonicMs: number) => Date,
): EventPage {
  const rows = order === 'newest' ? [...events.all()].toReversed() : [...events.all()];
  const isNew = ({ seq }: EventRow): boolean =>
    after === null || (order === 'newest' ? seq < Number(after) : seq > Number(after));
  const page = rows.filter((row) => isNew(row) && matches(row, filter, events));
  const next = page.length > limit ? String(page[limit - 1]!.seq) : null;
  return { events: page.slice(0, limit).map((row) => listedEvent(row, toDate)), next };
}

function matches(row: EventRow, filter: EventFilter, { undelivered }: MemoryEvents): boolean {
  const { company, ids, eventType, from, to, handler, state, search } = filter;
  const { fixed, raw } = row;
  const deliveries = raw === null ? [] : row.deliveries;
  const texts = [fixed.id, fixed.eventType, fixed.orderingKey ?? ''];
  const inState = (): boolean =>
    state === 'unhandled' || state === 'stale'
      ? undelivered[state].has(row)
      : (handler === undefined && state === undefined) ||
        deliveries.some(
          (delivery) =>
            (handler === undefined || delivery.handler === handler) &&
            (state === undefined || delivery.state === state),
        );
  return (
    (company === undefined || fixed.company === company) &&
    (ids === undefined || ids.includes(fixed.id)) &&
    (eventType === undefined || fixed.eventType === eventType) &&
    (from === undefined || fixed.receivedAt >= from) &&
    (to === undefined || fixed.receivedAt < to) &&
    (search === undefined || texts.some((text) => text.includes(search))) &&
    inState()
  );
}

/** The events that can be pruned, the oldest first. */
export function* prunable(
  events: MemoryEvents,
  { bodiesMs, tombstonesMs }: Parameters<InboxStore['prune']>[0],
  now: { readonly wall: number; readonly monotonic: number },
): Generator<{ readonly row: EventRow; readonly forget: boolean }> {
  for (const row of events.all()) {
    const age = now.monotonic - row.since;
    if (age <= Math.min(bodiesMs, tombstonesMs)) return;
    const settled = row.deliveries.every(({ state }) => state === 'done' || state === 'skipped');
    const forget = Math.min(age, now.wall - row.fixed.occurredAt.getTime()) > tombstonesMs;
    if (settled && (row.raw !== null || forget)) yield { row, forget };
  }
}
