import { MAX_FAILED } from '../store/event-summary.js';
import type { EventPage, FailureCount, InboxStore } from '../store/inbox-store.js';
import { readPage } from './sql/search.js';
import { toEvent } from './sql/stored-rows.js';
import { SLICE } from './sql/text-search.js';
import type { FailedSlice, FailuresSlice, Found, Position } from './sql/text-search.js';
import type { SqliteSession } from './sqlite-session.js';

/** Reads a page of events; see `InboxStore.list`. */
export async function listPage(
  { filter, order, limit, after }: Parameters<InboxStore['list']>[0],
  session: Pick<SqliteSession, 'run'>,
): Promise<EventPage> {
  const found = filter.search ? await search(filter.search, session) : null;
  const { found: rows, next } = await readPage(limit, after, (part) =>
    session.run('listSlice', { filter, found, order, ...part }),
  );
  return { events: rows.map(({ event }) => toEvent(event)), next };
}

/** Searches slice by slice, so that the thread can run receives between two slices. */
async function search(text: string, session: Pick<SqliteSession, 'run'>): Promise<Found> {
  const events = await session.run('eventsBeginning', { text });
  const seqs = [...(events ?? [])];
  let before: Position | null = null;
  for (let read = 0; read < MAX_FAILED; read += SLICE) {
    const slice: FailedSlice = await session.run('failedSlice', { text, before });
    seqs.push(...slice.seqs);
    before = slice.next;
    if (before === null) break;
  }
  return { seqs: JSON.stringify(seqs), many: events === null, text };
}

/** Reads all slices of {@link InboxStore.failures}. A group may be in several counts. */
export async function failures(
  session: Pick<SqliteSession, 'run'>,
): ReturnType<InboxStore['failures']> {
  const counts: FailureCount[] = [];
  let before: Position | null = null;
  for (let read = 0; read < MAX_FAILED; read += SLICE) {
    const slice: FailuresSlice = await session.run('failuresSlice', { before });
    counts.push(
      ...Array.from(slice.counts, (one) => ({
        ...one,
        oldestAt: new Date(one.oldestAt),
        newestAt: new Date(one.newestAt),
      })),
    );
    before = slice.next;
    if (before === null) return { counts, more: false };
  }
  return { counts, more: true };
}
