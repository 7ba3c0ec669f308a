import type { EventPage, InboxStore } from '../../inbox-store.js';
import type { ConnectionSource } from '../connection/connection-source.js';
import { conditions, Values } from './event-filter.js';
import { listedColumns, toEvent } from './stored-rows.js';

/** A page of events, by receipt. */
export async function list(
  source: ConnectionSource,
  schema: string,
  { filter, order, limit, after }: Parameters<InboxStore['list']>[0],
): Promise<EventPage> {
  const values = new Values();
  const wanted = conditions(schema, filter, values);
  const [than, direction] = order === 'newest' ? ['<', 'DESC'] : ['>', 'ASC'];
  if (after !== null) {
    const { ms, seq } = fromCursor(after);
    const time = `to_timestamp(${values.add(ms, 'float8')} / 1000)`;
    wanted.push(`(e.received_at, e.seq) ${than} (${time}, ${values.add(seq, 'bigint')})`);
  }
  const where = wanted.length === 0 ? '' : `WHERE ${wanted.join(' AND ')}`;
  // One more than asked for: whether there is a next page.
  const rows = await source.query(
    `SELECT ${listedColumns(schema)} FROM ${schema}.event e ${where}
      ORDER BY e.received_at ${direction}, e.seq ${direction} LIMIT ${values.add(limit + 1, 'integer')}`,
    values.all,
  );
  const page = rows.slice(0, limit);
  const last = page.at(-1);
  const more = rows.length > limit && last !== undefined;
  return {
    events: page.map(toEvent),
    next: more ? `${Math.round(Number(last['received_ms']))}-${last['seq']}` : null,
  };
}

function fromCursor(cursor: string): { ms: number; seq: string } {
  const parts = /^(\d{1,15})-(\d{1,18})$/.exec(cursor);
  if (parts === null) throw new TypeError('"after" must be the "next" of the previous page.');
  return { ms: Number(parts[1]), seq: parts[2]! };
}
