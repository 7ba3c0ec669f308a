import { MAX_FAILED } from '../store/event-summary.js';
import type { EventPage, FailureCount, InboxStore } from '../store/inbox-store.js';
import { MAX_READ } from '../store/stored-event.js';
import { readPage, SLICE as EVENTS } from './sql/search.js';
import { toEvent } from './sql/stored-rows.js';
import { SLICE } from './sql/text-search.js';
import type { Found, Position } from './sql/text-search.js';
import type { SqliteSession } from './sqlite-session.js';

/** Reads a page of events; see `InboxStore.list`. */
export async function listPage(
  { filter, order, limit, after }: Parameters<InboxStore['list']>[0],
  session: Pick<SqliteSession, 'run'>,
): Promise<EventPage> {
  const found = filter.search ? await search(filter.search, session) : null;
  const { found: rows, next } = await readPage(
    limit,
    after,
    (part) => session.run('listSlice', { filter, found, order, ...part }),
    MAX_READ / EVENTS,
  );
  return { events: rows.map(({ event }) => toEvent(event)), next };
}

/** Finds the events of a search. */
async function search(text: string, session: Pick<SqliteSession, 'run'>): Promise<Found> {
  const { seqs: begin, ...rest } = await session.run('eventsBeginning', { text });
  const seqs = [...begin];
  await eachFailedSlice(async (before) => {
    const slice = await session.run('failedSlice', { text, before });
    seqs.push(...slice.seqs);
    return slice.next;
  });
  return { seqs: JSON.stringify(seqs), ...rest, text };
}

/** Counts failed deliveries; see `InboxStore.failures`. A group may be in several counts. */
export async function failures(
  session: Pick<SqliteSession, 'run'>,
): ReturnType<InboxStore['failures']> {
  const counts: FailureCount[] = [];
  const more = await eachFailedSlice(async (before) => {
    const slice = await session.run('failuresSlice', { before });
    counts.push(
      ...Array.from(slice.counts, (one) => ({
        ...one,
        oldestAt: new Date(one.oldestAt),
        newestAt: new Date(one.newestAt),
      })),
    );
    return slice.next;
  });
  return { counts, more };
}

/**
 * Reads the {@link MAX_FAILED} newest failed deliveries slice by slice, so that the thread can run receives between two
 * slices. Resolves with whether there are more.
 *
 * @param read reads the slice before a position, and resolves with the position of the next slice
 */
async function eachFailedSlice(
  read: (before: Position | null) => Promise<Position | null>,
): Promise<boolean> {
  let before: Position | null = null;
  for (let count = 0; count < MAX_FAILED; count += SLICE) {
    before = await read(before);
    if (before === null) return false;
  }
  return true;
}
