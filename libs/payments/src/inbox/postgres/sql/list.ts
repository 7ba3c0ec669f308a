import type { EventFilter, EventPage, InboxStore } from '../../store/inbox-store.js';
import type { ConnectionSource } from '../connection/connection-source.js';
import type { Value } from '../connection/database-connection.js';
import { listedColumns, toEvent } from './stored-rows.js';
import { toStored } from './stored-text.js';

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
  // One more than requested: if it is found, there is a next page.
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

/** The numbered parameters of a statement. */
class Values {
  readonly all: Value[] = [];

  /** The placeholder of a value. */
  add(value: Value, type: string): string {
    this.all.push(value);
    return `$${this.all.length}::${type}`;
  }
}

/** Conditions for an event `e`. */
function conditions(schema: string, filter: EventFilter, values: Values): string[] {
  const text = (value: string): string => values.add(toStored(value), 'text');
  const time = (value: Date): string =>
    `to_timestamp(${values.add(value.getTime(), 'float8')} / 1000)`;
  const { company, ids, eventType, from, to, search } = filter;
  const found: string[] = [];
  if (company !== undefined) found.push(`e.company = ${text(company)}`);
  if (ids !== undefined) found.push(`e.id = ANY (${values.add(ids.map(toStored), 'text[]')})`);
  if (eventType !== undefined) found.push(`e.event_type = ${text(eventType)}`);
  if (from !== undefined) found.push(`e.received_at >= ${time(from)}`);
  if (to !== undefined) found.push(`e.received_at < ${time(to)}`);
  if (search !== undefined) {
    const part = text(search);
    const columns = ['e.id', 'e.ordering_key', 'e.event_type'];
    found.push(`(${columns.map((column) => `strpos(${column}, ${part}) > 0`).join(' OR ')})`);
  }
  return [...found, ...deliveryConditions(schema, filter, values)];
}

/** Handler and state together, of one delivery. */
function deliveryConditions(
  schema: string,
  { handler, state }: EventFilter,
  values: Values,
): string[] {
  const delivery: string[] = [];
  const undelivered: string[] = [];
  if (state === 'unhandled') undelivered.push('e.unhandled AND NOT e.stale');
  else if (state === 'stale') undelivered.push('e.unhandled AND e.stale');
  // Not as a parameter: the planner uses a partial index only if it knows the state.
  else if (state !== undefined) delivery.push(`d.state = ${literal(state)}`);
  if (handler !== undefined) {
    delivery.push(`d.handler = ${values.add(toStored(handler), 'text')}`);
  }
  if (delivery.length === 0) return undelivered;
  const where = delivery.join(' AND ');
  return [...undelivered, `e.seq IN (SELECT d.event FROM ${schema}.delivery d WHERE ${where})`];
}

function literal(state: string): string {
  if (!/^[a-z]+$/.test(state)) throw new TypeError(`"${state}" is no state of a delivery.`);
  return `'${state}'`;
}
