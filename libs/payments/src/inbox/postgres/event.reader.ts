import type { EventFilter, EventPage, StoredEvent } from '../inbox-store.js';
import type { ConnectionSource } from './connection.source.js';
import { conditions, Values } from './event.filter.js';
import { listedColumns, toEvent, wholeColumns } from './stored.rows.js';
import { toStored } from './stored.text.js';

/** Reads events. */
export class EventReader {
  constructor(
    private readonly source: ConnectionSource,
    private readonly schema: string,
  ) {}

  async find(company: string, id: string): Promise<StoredEvent | undefined> {
    const [row] = await this.source.query(
      `SELECT ${wholeColumns(this.schema)} FROM ${this.schema}.events e
        WHERE e.company = $1 AND e.id = $2`,
      [toStored(company), toStored(id)],
    );
    return row && toEvent(row);
  }

  async list(query: {
    readonly filter: EventFilter;
    readonly order: 'newest' | 'oldest';
    readonly limit: number;
    readonly after: string | null;
  }): Promise<EventPage> {
    const values = new Values();
    const wanted = conditions(this.schema, query.filter, values);
    const [than, way] = query.order === 'newest' ? ['<', 'DESC'] : ['>', 'ASC'];
    if (query.after !== null) {
      const { ms, seq } = fromCursor(query.after);
      const time = `to_timestamp(${values.add(ms, 'float8')} / 1000)`;
      wanted.push(`(e.received_at, e.seq) ${than} (${time}, ${values.add(seq, 'bigint')})`);
    }
    const where = wanted.length === 0 ? '' : `WHERE ${wanted.join(' AND ')}`;
    // One more than asked for tells whether there is a next page.
    const rows = await this.source.query(
      `SELECT ${listedColumns(this.schema)} FROM ${this.schema}.events e ${where}
        ORDER BY e.received_at ${way}, e.seq ${way} LIMIT ${values.add(query.limit + 1, 'integer')}`,
      values.all,
    );
    const page = rows.slice(0, query.limit);
    const last = page.at(-1);
    const more = rows.length > query.limit && last !== undefined;
    return {
      events: page.map(toEvent),
      next: more ? `${Math.round(Number(last['received_ms']))}-${last['seq']}` : null,
    };
  }
}

function fromCursor(cursor: string): { ms: number; seq: string } {
  const parts = /^(\d{1,15})-(\d{1,18})$/.exec(cursor);
  if (parts === null) throw new TypeError('"after" must be the "next" of the page before.');
  return { ms: Number(parts[1]), seq: parts[2]! };
}
