import { MAX_FAILED } from '../store/event-summary.js';
import type { EventPage, FailureCount, InboxStore } from '../store/inbox-store.js';
import { readPage } from './sql/search.js';
import type { Cursor } from './sql/search.js';
import { toEvent } from './sql/stored-rows.js';
import { SLICE } from './sql/text-search.js';
import type { Entry, Found, NearestSlice, Position } from './sql/text-search.js';
import type { SqliteSession } from './sqlite-session.js';

/** After how many slices without a found event a list continues at the next found event. */
const MAX_EMPTY = 3;
/** How often a page does so. */
const MAX_JUMPS = 2;
/** How many slices of references are read for that: 200,000 references, in about 40 ms. */
const MAX_SLICES = 10;

/** Reads a page of events; see `InboxStore.list`. */
export async function listPage(
  { filter, order, limit, after }: Parameters<InboxStore['list']>[0],
  session: Pick<SqliteSession, 'run'>,
): Promise<EventPage> {
  const found = filter.search ? await search(filter.search, session) : null;
  let [empty, jumps] = [0, found?.many && found.byReference ? MAX_JUMPS : 0];
  const { found: rows, next } = await readPage(limit, after, async (part) => {
    const slice = await session.run('listSlice', { filter, found, order, ...part });
    empty = slice.found.length === 0 ? empty + 1 : 0;
    if (slice.next === null || empty < MAX_EMPTY || jumps === 0) return slice;
    [empty, jumps] = [0, jumps - 1];
    return { ...slice, next: await nearest(found!, order, slice.next, session) };
  });
  return { events: rows.map(({ event }) => toEvent(event)), next };
}

/**
 * The position in the list before the next found event; `null` if there is none. References are often numbers that
 * count up, so the events of one search may be far from each other in the list.
 */
async function nearest(
  found: Found,
  order: 'newest' | 'oldest',
  after: Cursor,
  session: Pick<SqliteSession, 'run'>,
): Promise<Cursor | null> {
  const times: number[] = [];
  const at = after.receivedAt;
  let from: Entry | null = null;
  for (let slices = 0; slices < MAX_SLICES; slices += 1) {
    const request = { found, order, after: at, from };
    const slice: NearestSlice = await session.run('nearestSlice', request);
    if (slice.receivedAt !== null) times.push(slice.receivedAt);
    from = slice.next;
    if (from === null) break;
  }
  // So many references begin with the text that the list soon contains one.
  if (from !== null) return after;
  if (times.length === 0) return null;
  const receivedAt = order === 'newest' ? Math.max(...times) : Math.min(...times);
  if (receivedAt === at) return after;
  return { receivedAt, seq: order === 'newest' ? Number.MAX_SAFE_INTEGER : 0 };
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
