import { MAX_DISORDER_MS, MAX_READ } from '../../../inbox/store/stored-event.js';
import type {
  EventFilter,
  EventPage,
  InboxStore,
  StoredEvent,
} from '../../../inbox/store/inbox-store.js';
import { parseSeq } from '../../../inbox/store/list-arguments.js';
import type { ConnectionSource } from '../connection/connection-source.js';
import type { Parameter } from '../connection/database-connection.js';
import { BY_INDEX } from './schema.js';
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

/** Returns a page of events in the order of their numbers. */
export async function list(
  source: ConnectionSource,
  schema: string,
  query: Parameters<InboxStore['list']>[0],
): Promise<EventPage> {
  const { filter, limit } = query;
  const found = filter.search ? await search(source, schema, filter.search) : null;
  const read = async (part: Query & { readonly last?: string | null }) => {
    const { texts, values } = pageStatements(schema, part, found);
    const rows = await source.query(texts[0]!, values);
    return rows.length > limit || texts[1] === undefined ? rows : source.query(texts[1], values);
  };
  let rows = await read(query);
  let last: string | null = null;
  if (rows.length <= limit && isUnbounded(filter, found)) {
    last = await lastRead(source, schema, query);
    rows = await read({ ...query, last });
  }
  return {
    events: rows.slice(0, limit).map(toEvent),
    next: rows.length > limit ? rows[limit - 1]!['seq']! : last,
  };
}

type Query = Parameters<InboxStore['list']>[0];

/** How many events are compared with the filter at first. If many match, they fill the page. */
const FIRST_READ = 1000;

/** Whether all events may have to be compared with the filter to fill a page. */
function isUnbounded(filter: EventFilter, found: Found | null): boolean {
  const { company, ids, eventType, source, handler, state, from, to } = filter;
  const few = ids !== undefined || found?.more === false || hasIndex(state);
  return (
    !few &&
    (found ?? company ?? eventType ?? source ?? handler ?? state ?? from ?? to) !== undefined
  );
}

/** Whether an index contains the events in this state. */
function hasIndex(state: EventFilter['state']): boolean {
  return state !== undefined && state !== 'done' && state !== 'skipped';
}

/** The number of the last event that a page compares with the filter; `null` if it compares all. */
async function lastRead(
  source: ConnectionSource,
  schema: string,
  query: Query,
): Promise<string | null> {
  const values = new ParameterList();
  const text = `SELECT e.seq FROM ${schema}.event e
    WHERE ${rangeOf(schema, query, values).join(' AND ')} ${sortedBy(query.order)} LIMIT 1 OFFSET ${MAX_READ - 1}`;
  const [row] = await source.query(text, values.all);
  return row?.['seq'] ?? null;
}

/**
 * The statement that reads a page, or two statements. If the matching events are frequent, they are among the first events
 * in the order of the list. If those do not fill the page, the second statement reads the events that can match with an
 * index, and sorts them. The planner would choose one way by its estimates, and might read all events for a page.
 */
function pageStatements(
  schema: string,
  query: Query & { readonly last?: string | null },
  found: Found | null,
): { texts: string[]; values: Parameter[] } {
  const { filter, order, limit } = query;
  const values = new ParameterList();
  const range = rangeOf(schema, query, values);
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
  const lookUp = (numbers: string, where: string): string => `SELECT e.seq
    FROM (SELECT DISTINCT * FROM (${numbers}) n) n (seq)
    CROSS JOIN LATERAL (SELECT e.seq ${from} ${where} AND e.seq = n.seq OFFSET 0) e`;
  let texts = [`SELECT ${columns} ${from} ${conditions} ${page}`];
  if (known !== null) {
    texts = [sorted(lookUp(`SELECT unnest(${known})`, conditions))];
  } else if (isUnbounded(filter, found)) {
    texts = [inOrder(query.last === undefined ? `LIMIT ${FIRST_READ}` : 'OFFSET 0')];
  } else if (filter.ids === undefined && hasIndex(filter.state)) {
    const all = hasNoDeliveries(filter.state)
      ? `SELECT e.seq ${from} ${conditions}`
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
  return `ORDER BY e.seq ${direction}`;
}

/** SQL conditions of the events between two numbers, and of those that may be within the times of the filter. */
function rangeOf(
  schema: string,
  { filter: { from, to }, order, after, last = null }: Query & { readonly last?: string | null },
  values: ParameterList,
): string[] {
  const found = ['true'];
  // A subquery, so that it runs once and not for each event.
  const first = (ms: number): string =>
    `(SELECT ${schema}.first_since(${values.add(ms, 'bigint')}))`;
  const number = (seq: number | string): string => values.add(seq, 'bigint');
  const [beyond, before] = order === 'newest' ? ['<', '>='] : ['>', '<='];
  if (from !== undefined) found.push(`e.seq >= ${first(from.getTime() - MAX_DISORDER_MS)}`);
  if (to !== undefined) found.push(`e.seq < ${first(to.getTime() + MAX_DISORDER_MS)}`);
  if (after !== null) found.push(`e.seq ${beyond} ${number(parseSeq(after))}`);
  if (last !== null) found.push(`e.seq ${before} ${number(last)}`);
  return found;
}

/**
 * The function `first_since` returns a number between the events that were received before a time and the others, as far
 * as times of receipt are in the order of numbers. It reads about as many events as the largest number has bits.
 */
export const firstSinceFunction = (schema: string): string => `
CREATE FUNCTION ${schema}.first_since(p_ms bigint) RETURNS bigint
LANGUAGE plpgsql STABLE ${BY_INDEX}
AS $first_since$
DECLARE
  v_low bigint := 0;
  v_high bigint := 1 + COALESCE((SELECT e.seq FROM ${schema}.event e ORDER BY e.seq DESC LIMIT 1), 0);
  v_middle bigint;
  v_event record;
BEGIN
  WHILE v_low < v_high LOOP
    v_middle := (v_low + v_high) / 2;
    SELECT e.seq, e.received_at INTO v_event FROM ${schema}.event e WHERE e.seq >= v_middle ORDER BY e.seq LIMIT 1;
    IF v_event.received_at < p_ms THEN v_low := v_event.seq + 1;
    ELSE v_high := v_middle; END IF;
  END LOOP;
  RETURN v_low;
END $first_since$;
`;

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
  { company, ids, eventType, source, state, from, to }: EventFilter,
  values: ParameterList,
): string[] {
  const text = (value: string): string => values.add(toStored(value), 'text');
  const found: string[] = [];
  if (company !== undefined) found.push(`e.company = ${text(company)}`);
  if (ids !== undefined) found.push(`e.id = ANY (${values.add(ids.map(toStored), 'text[]')})`);
  if (eventType !== undefined) found.push(`e.event_type = ${text(eventType)}`);
  if (source !== undefined) found.push(`e.source = ${text(source)}`);
  const time = (date: Date): string => values.add(date.getTime(), 'bigint');
  if (from !== undefined) found.push(`e.received_at >= ${time(from)}`);
  if (to !== undefined) found.push(`e.received_at < ${time(to)}`);
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
