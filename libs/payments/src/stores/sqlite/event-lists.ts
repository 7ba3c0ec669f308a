import { MAX_FAILED } from '../../inbox/store/event-summary.js';
import type { EventPage, FailureCount, InboxStore } from '../../inbox/store/inbox-store.js';
import { parseSeq } from '../../inbox/store/list-arguments.js';
import { MAX_READ } from '../../inbox/store/stored-event.js';
import { readPage, SLICE as EVENTS } from './sql/search.js';
import { toEvent } from './sql/stored-rows.js';
import { SLICE } from './sql/text-search.js';
import type { Position } from './sql/text-search.js';
import type { SqliteSession } from './sqlite-session.js';
import type { ResponseOf } from './thread/operations.js';

/** Reads a page of events; see `InboxStore.list`. */
export async function listPage(
  { filter, order, limit, after }: Parameters<InboxStore['list']>[0],
  session: Pick<SqliteSession, 'run'>,
): Promise<EventPage> {
  const found = filter.search ? await session.run('eventsFound', { text: filter.search }) : null;
  const { found: rows, next } = await readPage(
    limit,
    after === null ? null : parseSeq(after),
    (part) => session.run('listSlice', { filter, found, order, ...part }),
    MAX_READ / EVENTS,
  );
  return {
    events: rows.map(({ event }) => toEvent(event)),
    next: next === null ? null : String(next),
  };
}

/**
 * Counts the {@link MAX_FAILED} newest failed deliveries slice by slice, so that the thread can run receives between two
 * slices; see `InboxStore.failures`. A group may be in several counts.
 */
export async function failures(
  session: Pick<SqliteSession, 'run'>,
): ReturnType<InboxStore['failures']> {
  const counts: FailureCount[] = [];
  let before: Position | null = null;
  for (let read = 0; read < MAX_FAILED; read += SLICE) {
    const slice: ResponseOf<'failuresSlice'> = await session.run('failuresSlice', { before });
    for (const one of slice.counts) {
      counts.push({
        ...one,
        oldestAt: new Date(one.oldestAt),
        newestAt: new Date(one.newestAt),
      });
    }
    before = slice.next;
    if (before === null) return { counts, more: false };
  }
  return { counts, more: true };
}
