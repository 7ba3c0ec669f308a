import { setImmediate } from 'node:timers/promises';
import { TEST_EVENT_TYPE } from '../../events/payment-event.js';
import type { countActivity } from '../../inbox/store/activity-per-minute.js';
import type {
  EventFilter,
  FailedDelivery,
  InboxStats,
  InboxStore,
  IncomingEvent,
  StoredDelivery,
  StoredEvent,
} from '../../inbox/store/inbox-store.js';
import {
  amountIn,
  capped,
  lowerCase,
  MAX_FAILED,
  NO_SUMMARY,
  normalAmount,
  parseSeq,
  toHistory,
} from '../../inbox/store/stored-event.js';
import type { EventIndex, MemoryDelivery, MemoryEvent } from './memory-events.js';

type ToDate = (monotonicMs: number) => Date;

/** Returns a page of the listed rows. `rows` must be in the order of `seq`. `next` is `null` on the last page. */
export function pageOf<Row extends { readonly seq: number }>(
  rows: Iterable<Row>,
  isListed: (row: Row) => boolean,
  { order, limit, after }: Omit<Parameters<InboxStore['list']>[0], 'filter'>,
): { page: Row[]; next: string | null } {
  const last = after === null ? null : parseSeq(after);
  const isAfter = ({ seq }: Row): boolean =>
    last === null || (order === 'newest' ? seq < last : seq > last);
  const all = order === 'newest' ? [...rows].toReversed() : [...rows];
  const found = all.filter((row) => isAfter(row) && isListed(row));
  const next = found.length > limit ? String(found[limit - 1]!.seq) : null;
  return { page: found.slice(0, limit), next };
}

/** Returns the event as `find()` does if `whole` is true, and as `list()` does otherwise. */
export function describeEvent(row: MemoryEvent, toDate: ToDate, whole: boolean): StoredEvent {
  const { event, digest } = row;
  const { company, id, source, eventType, occurredAt, orderingKey, stale } = event;
  const deliveries = visibleDeliveries(row).map((delivery): StoredDelivery => ({
    handler: delivery.handler.name,
    state: delivery.state,
    attempts: delivery.attempts,
    lastError: delivery.lastError,
    frames: whole ? delivery.frames : null,
    dueAt: delivery.state === 'pending' ? toDate(delivery.dueAt) : null,
    finishedAt: delivery.finishedAt === null ? null : new Date(delivery.finishedAt),
    history: whole ? toHistory(delivery.history) : [],
  }));
  return {
    company,
    id,
    source,
    eventType,
    occurredAt,
    orderingKey,
    stale,
    ...(event.summary ?? NO_SUMMARY),
    receivedAt: new Date(row.receivedMs),
    pruned: digest !== null,
    raw: whole && digest === null ? Buffer.from(event.raw) : null,
    headers: whole ? { ...event.headers } : {},
    repeats: whole ? row.repeats : [],
    deliveries: deliveries.toSorted((a, b) => (a.handler < b.handler ? -1 : 1)),
  };
}

/** Returns the deliveries that callers of the store can see. The deliveries of a tombstone are hidden. */
function visibleDeliveries({ digest, deliveries }: MemoryEvent): readonly MemoryDelivery[] {
  return digest === null ? deliveries : [];
}

function withoutDeliveries({
  digest,
  deliveries,
  event,
}: MemoryEvent): 'unhandled' | 'stale' | null {
  if (digest !== null || deliveries.length > 0 || event.eventType === TEST_EVENT_TYPE) return null;
  return event.stale ? 'stale' : 'unhandled';
}

export function matches(row: MemoryEvent, filter: EventFilter): boolean {
  const { company, ids, eventType, source, from, to, handler, state, search } = filter;
  const { event, receivedMs } = row;
  const isSelected = (delivery: MemoryDelivery): boolean =>
    (handler === undefined || delivery.handler.name === handler) &&
    (state === undefined || delivery.state === state);
  const hasDelivery = (): boolean => {
    if (state === 'unhandled' || state === 'stale') {
      return handler === undefined && withoutDeliveries(row) === state;
    }
    if (handler === undefined && state === undefined) return true;
    return visibleDeliveries(row).some(isSelected);
  };
  return (
    (company === undefined || event.company === company) &&
    (ids === undefined || ids.includes(event.id)) &&
    (eventType === undefined || event.eventType === eventType) &&
    (source === undefined || event.source === source) &&
    (from === undefined || receivedMs >= from.getTime()) &&
    (to === undefined || receivedMs < to.getTime()) &&
    (search === undefined || hasText(event, search)) &&
    hasDelivery()
  );
}

function hasText({ id, summary, orderingKey }: IncomingEvent, text: string): boolean {
  if (id.startsWith(text) || orderingKey === text || beginsWith(summary?.reference, text)) {
    return true;
  }
  const searched = amountIn(text);
  if (searched === null || summary?.amount == null) return false;
  const { amount, currencies } = searched;
  const isCurrency = currencies.length === 0 || currencies.includes(summary.currency ?? '');
  return normalAmount(summary.amount) === amount && isCurrency;
}

/** Whether a reference begins with a text, if `A` to `Z` match in either case. */
export function beginsWith(reference: string | null | undefined, text: string): boolean {
  return reference != null && lowerCase(reference).startsWith(lowerCase(text));
}

export function isOfPayment({ event }: MemoryEvent, company: string, payment: string): boolean {
  const { orderingKey, summary } = event;
  const isNamed = orderingKey === payment || summary?.reference === payment;
  return isNamed && event.company === company;
}

/** Counts all events. The count of 100,000 events takes a few milliseconds. */
export function countStats(events: EventIndex, now: number): Omit<InboxStats, 'paused'> {
  const reasons = { unhandled: 0, stale: 0 };
  const byHandler = new Map<string, { pending: number; running: number; dead: number }>();
  let oldest: MemoryEvent | null = null;
  for (const row of events.all()) {
    const reason = withoutDeliveries(row);
    if (reason !== null) reasons[reason] += 1;
    if (row.finishedAt === null) oldest ??= row;
    for (const { handler, state } of row.deliveries) {
      if (state === 'done' || state === 'skipped') continue;
      const counts = byHandler.get(handler.name) ?? { pending: 0, running: 0, dead: 0 };
      counts[state] += 1;
      byHandler.set(handler.name, counts);
    }
  }
  const deliveries = [...byHandler].flatMap(([handler, counts]) =>
    (['pending', 'running', 'dead'] as const)
      .filter((state) => counts[state] > 0)
      .map((state) => ({ handler, state, ...capped(counts[state]) })),
  );
  return {
    deliveries,
    unhandled: capped(reasons.unhandled),
    stale: capped(reasons.stale),
    oldestPendingMs: oldest && now - oldest.receivedAt,
  };
}

export function failedDeliveries(events: EventIndex): Awaited<ReturnType<InboxStore['failures']>> {
  const all = [...events.all()].toReversed().flatMap((row) => row.deliveries.filter(isFailed));
  const failed = all.slice(0, MAX_FAILED).map((delivery): FailedDelivery => {
    const { handler, lastError, state, row, earlier } = delivery;
    const [, startedMs, tookMs] = earlier.at(-1)!;
    return {
      handler: handler.name,
      error: lastError!,
      state: state === 'dead' ? 'dead' : 'retrying',
      failedAt: new Date(startedMs + tookMs),
      company: row.event.company,
      eventId: row.event.id,
    };
  });
  return { failed, more: all.length > MAX_FAILED };
}

/** Whether the delivery is pending, running or dead, and at least one of its attempts failed. */
function isFailed({ lastError, isOpen, state }: MemoryDelivery): boolean {
  return lastError !== null && (isOpen || state === 'dead');
}

const SLICE = 5000;

/** Returns a function that reads the events slice by slice. Between two slices, the store can receive events. */
export function activitySlices(events: EventIndex): Parameters<typeof countActivity>[3] {
  const rows = [...events.all()].toReversed();
  return async () => {
    const slice = rows.splice(0, SLICE);
    if (rows.length > 0) await setImmediate();
    return slice.map((row) => ({
      seq: row.seq,
      receivedMs: row.receivedMs,
      source: row.event.source,
      eventType: row.event.eventType,
      deliveries: visibleDeliveries(row).map(({ handler, state, finishedAt, earlier }) => ({
        handler: handler.name,
        state,
        finishedMs: finishedAt,
        failedMs: earlier
          .filter(([, , , outcome]) => outcome !== 'd')
          .map(([, startedMs, tookMs]) => startedMs + Math.max(0, tookMs)),
      })),
    }));
  };
}
