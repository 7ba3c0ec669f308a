import type { EventFilter, EventPage, InboxStore, StoredEvent } from '../../store/inbox-store.js';
import type { ConnectionSource } from '../connection/connection-source.js';
import type { Parameter } from '../connection/database-connection.js';
import { IS_COUNTED, IS_LISTED } from './schema.js';
import { listedColumns, toEvent, toStored, wholeColumns } from './stored-rows.js';

/** Returns the event with an id, with its body, headers, repeats and histories. */
export async function find(
  source: ConnectionSource,
  schema: string,
  company: string,
  id: string,
): Promise<StoredEvent | undefined> {
  const text = `SELECT ${wholeColumns(schema)} FROM ${schema}.event e WHERE e.company = $1 AND e.id = $2`;
  const [row] = await source.query(text, [toStored(company), toStored(id)]);
  return row && toEvent(row);
}

/** Returns a page of events in the order of receipt. */
export async function list(
  source: ConnectionSource,
  schema: string,
  { filter, order, limit, after }: Parameters<InboxStore['list']>[0],
): Promise<EventPage> {
  const values = new ParameterList();
  const conditions = conditionsOf(schema, filter, values);
  const [than, direction] = order === 'newest' ? ['<', 'DESC'] : ['>', 'ASC'];
  if (after !== null) {
    const { ms, seq } = parsePosition(after);
    const time = `to_timestamp(${values.add(ms, 'float8')} / 1000)`;
    conditions.push(`(e.received_at, e.seq) ${than} (${time}, ${values.add(seq, 'bigint')})`);
  }
  // One event more than requested: if there is one, there is a next page.
  const rows = await source.query(
    `SELECT ${listedColumns(schema)} FROM ${schema}.event e WHERE ${[IS_LISTED, ...conditions].join(' AND ')}
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

/** Reads the `next` of a page: the time and the number of its last event or expectation. */
export function parsePosition(next: string): { ms: number; seq: string } {
  const parts = /^(\d{1,15})-(\d{1,18})$/.exec(next);
  if (parts === null) throw new TypeError('"after" must be the "next" of the previous page.');
  return { ms: Number(parts[1]), seq: parts[2]! };
}

/** Collects the parameters of a statement. */
export class ParameterList {
  readonly all: Parameter[] = [];

  /** Adds a value and returns its placeholder. */
  add(value: Parameter, type: string): string {
    this.all.push(value);
    return `$${this.all.length}::${type}`;
  }
}

/** SQL conditions of a filter, for an event `e`. */
function conditionsOf(schema: string, filter: EventFilter, values: ParameterList): string[] {
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

/** The conditions of handler and state. One delivery must match both. */
function deliveryConditions(
  schema: string,
  { handler, state }: EventFilter,
  values: ParameterList,
): string[] {
  const ofDelivery: string[] = [];
  const ofEvent: string[] = [];
  if (state === 'unhandled') ofEvent.push('e.unhandled AND NOT e.stale');
  else if (state === 'stale') ofEvent.push('e.unhandled AND e.stale');
  // A literal, not a parameter: the planner uses a partial index only if it knows the state.
  else if (state !== undefined) ofDelivery.push(`d.state = ${literal(state)}`);
  if (handler !== undefined) {
    ofDelivery.push(`d.handler = ${values.add(toStored(handler), 'text')}`);
  }
  if (ofDelivery.length === 0) return ofEvent;
  const where = [IS_COUNTED, ...ofDelivery].join(' AND ');
  return [...ofEvent, `e.seq IN (SELECT d.event FROM ${schema}.delivery d WHERE ${where})`];
}

function literal(state: string): string {
  if (!/^[a-z]+$/.test(state)) throw new TypeError(`"${state}" is not a state of a delivery.`);
  return `'${state}'`;
}
