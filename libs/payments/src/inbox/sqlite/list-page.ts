import type { EventPage, InboxStore } from '../inbox-store.js';
import { toEvent } from './answers.js';
import type { Cursor, ListRequest, ListSlice } from './sql/list.js';

/**
 * A page of a list, slice by slice: however long the search, no operation of the thread takes longer than a
 * slice, and receives are done in between.
 */
export async function listPage(
  { filter, order, limit, after }: Parameters<InboxStore['list']>[0],
  readSlice: (request: ListRequest) => Promise<ListSlice>,
): Promise<EventPage> {
  let from: Cursor | null = after === null ? null : toCursor(after);
  const found: ListSlice['found'][number][] = [];
  do {
    // One more than asked for tells whether this is the last page.
    const slice = await readSlice({ filter, order, limit: limit + 1 - found.length, after: from });
    found.push(...slice.found);
    from = slice.next;
  } while (from !== null && found.length <= limit);
  const last = found.length > limit ? found[limit - 1] : undefined;
  return {
    events: found.slice(0, limit).map(({ event }) => toEvent(event)),
    next: last === undefined ? null : `${last.at.receivedAt}.${last.at.seq}`,
  };
}

function toCursor(after: string): Cursor {
  const [, receivedAt, seq] = /^(-?\d{1,16})\.(\d{1,16})$/.exec(after) ?? [];
  if (receivedAt === undefined || seq === undefined) {
    throw new TypeError('"after" must be the "next" of the page before, or null.');
  }
  return { receivedAt: Number(receivedAt), seq: Number(seq) };
}
