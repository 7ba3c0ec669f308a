import { TEST_EVENT_TYPE } from '../../events/payment-event.js';
import type {
  DeliveryState,
  EventFilter,
  EventPage,
  InboxStats,
  InboxStore,
} from '../inbox-store.js';
import { isFinished, listedEvent } from './memory.rows.js';
import type { EventRow } from './memory.rows.js';

/** A page of `rows`, which come oldest first. The cursor is the number of the last event shown. */
export function pageOf(
  rows: Iterable<EventRow>,
  { filter, order, limit, after }: Parameters<InboxStore['list']>[0],
  toDate: (monotonicMs: number) => Date,
): EventPage {
  const ordered = order === 'newest' ? [...rows].toReversed() : [...rows];
  const seen = after === null ? null : Number(after);
  const isNew = ({ seq }: EventRow) =>
    seen === null || (order === 'newest' ? seq < seen : seq > seen);
  const page = ordered.filter((row) => isNew(row) && matchesFilter(row, filter));
  const events = page.slice(0, limit).map((row) => listedEvent(row, toDate));
  return { events, next: page.length > limit ? String(page[limit - 1]!.seq) : null };
}

/** Everything of {@link InboxStats} that is counted. */
export function countsOf(rows: Iterable<EventRow>, nowMs: number): Omit<InboxStats, 'paused'> {
  const counts = new Map<string, { handler: string; state: DeliveryState; count: number }>();
  let unhandled = 0;
  let stale = 0;
  let oldestPendingMs: number | null = null;
  for (const row of rows) {
    if (isIn('unhandled', row)) unhandled += 1;
    if (isIn('stale', row)) stale += 1;
    if (!row.deliveries.every(isFinished)) oldestPendingMs ??= nowMs - row.since;
    for (const { handler, state } of row.deliveries) {
      const key = `${handler}\n${state}`;
      const entry = counts.get(key) ?? { handler, state, count: 0 };
      entry.count += 1;
      counts.set(key, entry);
    }
  }
  return { deliveries: [...counts.values()], unhandled, stale, oldestPendingMs };
}

/** The events that may be pruned, oldest first. */
export function* prunable(
  rows: Iterable<EventRow>,
  { bodiesMs, tombstonesMs }: { readonly bodiesMs: number; readonly tombstonesMs: number },
  now: { readonly wall: number; readonly monotonic: number },
): Generator<{ readonly row: EventRow; readonly forget: boolean }> {
  for (const row of rows) {
    const age = now.monotonic - row.since;
    if (age <= Math.min(bodiesMs, tombstonesMs)) return;
    const settled = row.deliveries.every(({ state }) => state === 'done' || state === 'skipped');
    const forget = Math.min(age, now.wall - row.occurredAt) > tombstonesMs;
    if (settled && (row.raw !== null || forget)) yield { row, forget };
  }
}

/** Whether every field of the filter holds. */
function matchesFilter(row: EventRow, filter: EventFilter): boolean {
  const { company, ids, eventType, from, to, handler, state, search } = filter;
  const texts = [row.id, row.eventType, row.orderingKey ?? ''];
  return (
    (company === undefined || row.company === company) &&
    (ids === undefined || ids.includes(row.id)) &&
    (eventType === undefined || row.eventType === eventType) &&
    (from === undefined || row.receivedAt >= from.getTime()) &&
    (to === undefined || row.receivedAt < to.getTime()) &&
    (search === undefined || texts.some((text) => text.includes(search))) &&
    matchesDelivery(row, handler, state)
  );
}

function matchesDelivery(
  row: EventRow,
  handler: string | undefined,
  state: EventFilter['state'],
): boolean {
  if (state === 'unhandled' || state === 'stale') return isIn(state, row);
  if (handler === undefined && state === undefined) return true;
  return row.deliveries.some(
    (delivery) =>
      (handler === undefined || delivery.handler === handler) &&
      (state === undefined || delivery.state === state),
  );
}

/** A tombstone has no deliveries either, but it was handled; and a test needs no handler. */
function isIn(state: 'unhandled' | 'stale', row: EventRow): boolean {
  const undelivered = row.deliveries.length === 0 && row.raw !== null;
  return undelivered && row.eventType !== TEST_EVENT_TYPE && row.stale === (state === 'stale');
}
