import { MAX_READ } from '../../store/stored-event.js';
import type { EventFilter, EventPage, InboxStore, StoredEvent } from '../../store/inbox-store.js';
import { parseCursor } from '../../store/list-arguments.js';
import type { ConnectionSource } from '../connection/connection-source.js';
import type { Parameter, ResultRow } from '../connection/database-connection.js';
import { epochMs } from './schema.js';
import { listedColumns, toEvent, toStored, wholeColumns } from './stored-rows.js';
import { foundConditions, search } from './text-search.js';
import type { Found } from './text-search.js';

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
  query: Parameters<InboxStore['list']>[0],
): Promise<EventPage> {
  const { filter, limit } = query;
  const found = filter.search ? await search(source, schema, filter.search) : null;
  const last = isUnbounded(filter, found) ? await lastRead(source, schema, query) : null;
  const { texts, values } = pageStatements(schema, { ...query, last }, found);
  let rows = await source.query(texts[0]!, values);
  if (rows.length <= limit && texts[1] !== undefined) rows = await source.query(texts[1], values);
  return {
    events: rows.slice(0, limit).map(toEvent),
    next: rows.length > limit ? positionOf(rows[limit - 1]!) : last,
  };
}

type Query = Parameters<InboxStore['list']>[0];

/** Whether all events may have to be compared with the filter to fill a page. */
function isUnbounded(filter: EventFilter, found: Found | null): boolean {
  const { company, ids, eventType, source, handler, state } = filter;
  const few = ids !== undefined || found?.more === false || hasIndex(state);
  return !few && (found ?? company ?? eventType ?? source ?? handler ?? state) !== undefined;
}

/** Whether an index contains the events in this state. */
function hasIndex(state: EventFilter['state']): boolean {
  return state !== undefined && state !== 'done' && state !== 'skipped';
}

/** The position of the last event that a page compares with the filter; `null` if it compares all. */
async function lastRead(
  source: ConnectionSource,
  schema: string,
  query: Query,
): Promise<string | null> {
  const values = new ParameterList();
  const text = `SELECT ${epochMs('e.received_at')} AS received_ms, e.seq FROM ${schema}.event e
    WHERE ${rangeOf(query, values).join(' AND ')} ${sortedBy(query.order)} LIMIT 1 OFFSET ${MAX_READ - 1}`;
  const [row] = await source.query(text, values.all);
  return row === undefined ? null : positionOf(row);
}

/**
 * The statement that reads a page, or two statements. If the matching events are frequent, they are among the first events
 * in the order of the list. If those do not fill the page, the second statement reads the events that can match with an
 * index, and sorts them. The planner would choose one way by its estimates, and might read all events for a page.
 */
function pageStatements(
  schema: string,
  query: Query & { readonly last: string | null },
  found: Found | null,
): { texts: string[]; values: Parameter[] } {
  const { filter, order, limit } = query;
  const values = new ParameterList();
  const range = rangeOf(query, values);
  const known = found?.more === false ? values.add(found.events, 'bigint[]') : null;
  const ofEvent = [...range, ...eventConditions(filter, values)];
  if (found?.more) {
    const text = values.add(toStored(filter.search!), 'text');
    ofEvent.push(`(${foundConditions(text).join(' OR ')})`);
  }
  const deliveries = deliveriesOf(schema, filter, values);
  // OFFSET 0: the planner looks up the deliveries of each event. It could read all deliveries instead.
  const ofDeliveries = deliveries && `EXISTS (${deliveries} AND d.event = e.seq OFFSET 0)`;
  const conditions = [...ofEvent, ...(ofDeliveries === null ? [] : [ofDeliveries])].join(' AND ');
  // One event more than requested: if there is one, there is a next page.
  const page = `${sortedBy(order)} LIMIT ${values.add(limit + 1, 'integer')}`;
  const columns = listedColumns(schema);
  const from = `FROM ${schema}.event e WHERE`;
  const inOrder = (end: string): string => `SELECT ${columns} FROM
    (SELECT e.* ${from} ${range.join(' AND ')} ${sortedBy(order)} ${end}) e WHERE ${conditions} ${page}`;
  const sorted = (candidates: string): string =>
    `WITH found AS MATERIALIZED (${candidates}) SELECT ${columns} FROM ${schema}.event e
      WHERE e.seq IN (SELECT e.seq FROM found e ${page}) ${sortedBy(order)}`;
  // OFFSET 0: the planner looks up each event by its number.
  const lookUp = (numbers: string, where: string): string => `SELECT e.seq, e.received_at
    FROM (SELECT DISTINCT * FROM (${numbers}) n) n (seq)
    CROSS JOIN LATERAL (SELECT e.seq, e.received_at ${from} ${where} AND e.seq = n.seq OFFSET 0) e`;
  let texts = [`SELECT ${columns} ${from} ${conditions} ${page}`];
  if (known !== null) {
    texts = [sorted(lookUp(`SELECT unnest(${known})`, conditions))];
  } else if (isUnbounded(filter, found)) {
    texts = [inOrder('OFFSET 0')];
  } else if (filter.ids === undefined && hasIndex(filter.state)) {
    const all = hasNoDeliveries(filter.state)
      ? `SELECT e.seq, e.received_at ${from} ${conditions}`
      : lookUp(deliveries!, ofEvent.join(' AND '));
    texts = [inOrder(`LIMIT ${MAX_READ}`), sorted(all)];
  }
  return { texts, values: values.all };
}

function hasNoDeliveries(state: EventFilter['state']): boolean {
  return state === 'unhandled' || state === 'stale';
}

function sortedBy(order: Query['order']): string {
  const direction = order === 'newest' ? 'DESC' : 'ASC';
  return `ORDER BY e.received_at ${direction}, e.seq ${direction}`;
}

/** SQL conditions of the events between two positions, and within the times of the filter. */
function rangeOf(
  { filter: { from, to }, order, after, last = null }: Query & { readonly last?: string | null },
  values: ParameterList,
): string[] {
  const found = ['true'];
  const time = (ms: number): string => `to_timestamp(${values.add(ms, 'float8')} / 1000)`;
  const position = (text: string): string => {
    const { ms, seq } = parsePosition(text);
    return `(${time(ms)}, ${values.add(seq, 'bigint')})`;
  };
  const [beyond, before] = order === 'newest' ? ['<', '>='] : ['>', '<='];
  if (from !== undefined) found.push(`e.received_at >= ${time(from.getTime())}`);
  if (to !== undefined) found.push(`e.received_at < ${time(to.getTime())}`);
  if (after !== null) found.push(`(e.received_at, e.seq) ${beyond} ${position(after)}`);
  if (last !== null) found.push(`(e.received_at, e.seq) ${before} ${position(last)}`);
  return found;
}

/** The position of an event in a list; see {@link parsePosition}. */
function positionOf(row: ResultRow): string {
  return `${Math.round(Number(row['received_ms']))}-${row['seq']}`;
}

/** Reads the `next` of a page: the time and the number of its last event or expectation. */
export function parsePosition(next: string): { ms: number; seq: string } {
  const parts = parseCursor(next, /^(\d{1,15})-(\d{1,18})$/);
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

function eventConditions(
  { company, ids, eventType, source, state }: EventFilter,
  values: ParameterList,
): string[] {
  const text = (value: string): string => values.add(toStored(value), 'text');
  const found: string[] = [];
  if (company !== undefined) found.push(`e.company = ${text(company)}`);
  if (ids !== undefined) found.push(`e.id = ANY (${values.add(ids.map(toStored), 'text[]')})`);
  if (eventType !== undefined) found.push(`e.event_type = ${text(eventType)}`);
  if (source !== undefined) found.push(`e.source = ${text(source)}`);
  if (state === 'unhandled') found.push('e.unhandled AND NOT e.stale');
  if (state === 'stale') found.push('e.unhandled AND e.stale');
  return found;
}

/** SQL for the numbers of the events with a delivery of the handler and in the state; `null` without such a filter. */
function deliveriesOf(
  schema: string,
  { handler, state }: EventFilter,
  values: ParameterList,
): string | null {
  const found: string[] = [];
  // A literal, not a parameter: the planner uses a partial index only if it knows the state.
  if (state !== undefined && !hasNoDeliveries(state)) {
    found.push(`d.state = ${literal(state)}`);
  }
  if (handler !== undefined) found.push(`d.handler = ${values.add(toStored(handler), 'text')}`);
  if (found.length === 0) return null;
  return `SELECT d.event FROM ${schema}.delivery d WHERE ${found.join(' AND ')}`;
}

function literal(state: string): string {
  if (!/^[a-z]+$/.test(state)) throw new TypeError(`"${state}" is not a state of a delivery.`);
  return `'${state}'`;
}
