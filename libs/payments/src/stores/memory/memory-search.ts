import { MAX_FAILED } from '../../inbox/store/stored-event.js';
import type { FailureCount, InboxStore } from '../../inbox/store/inbox-store.js';
import type { HistoryEntry } from '../../inbox/store/stored-event.js';
import type { EventIndex } from './event-index.js';
import type { MemoryDelivery, MemoryEvent } from './memory-rows.js';

/** The deliveries that the store's callers can see. Those of a tombstone are hidden. */
export function visibleDeliveries({ raw, deliveries }: MemoryEvent): readonly MemoryDelivery[] {
  return raw === null ? [] : deliveries;
}

/** Whether a search for the text finds the event. */
export function hasText(row: MemoryEvent, text: string): boolean {
  const { id, orderingKey } = row.fixed;
  return [id, row.summary.reference].some((one) => one?.startsWith(text)) || orderingKey === text;
}

/** Whether a delivery failed and is pending, running or dead. */
function isFailed({ lastError, state }: MemoryDelivery): boolean {
  return lastError !== null && state !== 'done' && state !== 'skipped';
}

/** See `InboxStore.failures`. */
export function countFailures(events: EventIndex): Awaited<ReturnType<InboxStore['failures']>> {
  const failed = [...events.all()].toReversed().flatMap((row) => row.deliveries.filter(isFailed));
  const stateOf = ({ state }: MemoryDelivery) => (state === 'dead' ? 'dead' : 'retrying');
  const groups = Map.groupBy(failed.slice(0, MAX_FAILED), (delivery) =>
    JSON.stringify([delivery.handler.name, stateOf(delivery), delivery.lastError]),
  );
  const counts = [...groups.values()].map((all): FailureCount => {
    const newest = all[0]!;
    const times = all.map(({ earlier }) => endOf(earlier.at(-1)));
    return {
      handler: newest.handler.name,
      error: newest.lastError!,
      state: stateOf(newest),
      count: all.length,
      oldestAt: new Date(Math.min(...times)),
      newestAt: new Date(Math.max(...times)),
      company: newest.event.fixed.company,
      eventId: newest.event.fixed.id,
    };
  });
  return { counts, more: failed.length > MAX_FAILED };
}

function endOf([, startedMs, tookMs]: HistoryEntry = [0, 0, 0, 'f']): number {
  return startedMs + tookMs;
}
