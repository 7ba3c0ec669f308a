import { EXPECTATION_ID } from '../../store/expectation-store.js';
import { MAX_FAILED } from '../../store/event-summary.js';
import type { EventFilter, EventPage, InboxStore, StoredEvent } from '../../store/inbox-store.js';
import type { ConnectionSource } from '../connection/connection-source.js';
import { prepared } from '../connection/database-connection.js';
import type { Parameter } from '../connection/database-connection.js';
import { failuresFunction } from './failures.js';
import { BY_INDEX, HAS_FAILED, indexed, IS_COUNTED, IS_LISTED } from './schema.js';
import { elementsOf, LAST, listedColumns, toEvent, toStored, wholeColumns } from './stored-rows.js';

/** How many events the function `search` finds at most by the start of one of their texts. */
const MAX_FOUND = 3000;
/** How many events a list reads in its order before it reads all events that can match, and sorts them. */
const MAX_IN_ORDER = 20_000;

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
  const { texts, values } = pageStatements(schema, query, found);
  let rows = await source.query(texts[0]!, values);
  if (rows.length <= limit && texts[1] !== undefined) rows = await source.query(texts[1], values);
  const page = rows.slice(0, limit);
  const last = page.at(-1);
  const more = rows.length > limit && last !== undefined;
  return {
    events: page.map(toEvent),
    next: more ? `${Math.round(Number(last['received_ms']))}-${last['seq']}` : null,
  };
}

/**
 * The statement that reads a page, or two statements. If the matching events are frequent, they are among the first events
 * in the order of the list. If those do not fill the page, the second statement reads the events that can match with an
 * index, and sorts them. The planner would choose one way by its estimates, and might read all events for a page.
 */
function pageStatements(
  schema: string,
  { filter, order, limit, after }: Parameters<InboxStore['list']>[0],
  found: Found | null,
): { texts: string[]; values: Parameter[] } {
  const values = new ParameterList();
  const range = [IS_LISTED, ...timeConditions(filter, values)];
  const [than, direction] = order === 'newest' ? ['<', 'DESC'] : ['>', 'ASC'];
  if (after !== null) {
    const { ms, seq } = parsePosition(after);
    const time = `to_timestamp(${values.add(ms, 'float8')} / 1000)`;
    range.push(`(e.received_at, e.seq) ${than} (${time}, ${values.add(seq, 'bigint')})`);
  }
  const known = found && values.add([...found.events, ...found.failed], 'bigint[]');
  const anyOf = found?.more ? foundConditions(filter.search!, known!, values) : [];
  const ofEvent = [...range, ...eventConditions(filter, values)];
  if (anyOf.length > 0) ofEvent.push(`(${anyOf.join(' OR ')})`);
  const deliveries = deliveriesOf(schema, filter, values);
  const conditions = deliveries === null ? ofEvent : [...ofEvent, `e.seq IN (${deliveries})`];
  const ordered = `ORDER BY e.received_at ${direction}, e.seq ${direction}`;
  // One event more than requested: if there is one, there is a next page.
  const page = `${ordered} LIMIT ${values.add(limit + 1, 'integer')}`;
  const columns = listedColumns(schema);
  const from = `FROM ${schema}.event e WHERE`;
  const matching = `${from} ${conditions.join(' AND ')}`;
  const first = `SELECT ${columns} FROM (SELECT e.* ${from} ${range.join(' AND ')} ${ordered} LIMIT ${MAX_IN_ORDER}) e
    WHERE ${conditions.join(' AND ')} ${page}`;
  // OFFSET 0: the planner looks each event up by its number. It could read all events instead.
  const lookUp = (numbers: string, where: string): string => `SELECT e.seq, e.received_at
    FROM (SELECT DISTINCT * FROM (${numbers}) n) n (seq)
    CROSS JOIN LATERAL (SELECT e.seq, e.received_at ${where} AND e.seq = n.seq OFFSET 0) e`;
  const sorted = (candidates: string): string =>
    `WITH found AS MATERIALIZED (${candidates}) SELECT ${columns} FROM ${schema}.event e
      WHERE e.seq IN (SELECT e.seq FROM found e ${page}) ${ordered}`;
  let texts = [`SELECT ${columns} ${matching} ${page}`];
  if (known !== null && !found?.more) {
    texts = [sorted(lookUp(`SELECT unnest(${known})`, matching))];
  } else if (deliveries !== null && hasIndex(filter.state) && filter.ids === undefined) {
    texts = [first, sorted(lookUp(deliveries, `${from} ${ofEvent.join(' AND ')}`))];
  } else if (found !== null) {
    const ranges = anyOf.map((one) => `SELECT e.seq, e.received_at ${matching} AND ${one}`);
    texts = [first, sorted(ranges.join(' UNION '))];
  }
  return { texts, values: values.all };
}

/** Whether an index contains the deliveries in this state. */
function hasIndex(state: EventFilter['state']): boolean {
  return state === 'pending' || state === 'running' || state === 'dead';
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

function timeConditions({ from, to }: EventFilter, values: ParameterList): string[] {
  const time = (value: Date): string =>
    `to_timestamp(${values.add(value.getTime(), 'float8')} / 1000)`;
  const found: string[] = [];
  if (from !== undefined) found.push(`e.received_at >= ${time(from)}`);
  if (to !== undefined) found.push(`e.received_at < ${time(to)}`);
  return found;
}

function eventConditions(
  { company, ids, eventType, state }: EventFilter,
  values: ParameterList,
): string[] {
  const text = (value: string): string => values.add(toStored(value), 'text');
  const found: string[] = [];
  if (company !== undefined) found.push(`e.company = ${text(company)}`);
  if (ids !== undefined) found.push(`e.id = ANY (${values.add(ids.map(toStored), 'text[]')})`);
  if (eventType !== undefined) found.push(`e.event_type = ${text(eventType)}`);
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
  if (state !== undefined && state !== 'unhandled' && state !== 'stale') {
    found.push(`d.state = ${literal(state)}`);
  }
  if (handler !== undefined) found.push(`d.handler = ${values.add(toStored(handler), 'text')}`);
  if (found.length === 0) return null;
  return `SELECT d.event FROM ${schema}.delivery d WHERE ${[IS_COUNTED, ...found].join(' AND ')}`;
}

function literal(state: string): string {
  if (!/^[a-z]+$/.test(state)) throw new TypeError(`"${state}" is not a state of a delivery.`);
  return `'${state}'`;
}

/** The result of a search. */
interface Found {
  /** Numbers of the events whose id, transaction id or reference begins with the text; empty if {@link more}. */
  readonly events: readonly string[];
  /** Whether there are more than {@link MAX_FOUND} of them. */
  readonly more: boolean;
  /** Numbers of the events with a failed delivery whose error contains the text. */
  readonly failed: readonly string[];
}

async function search(source: ConnectionSource, schema: string, text: string): Promise<Found> {
  const statement = prepared(`SELECT * FROM ${schema}.search($1::text)`);
  const [row] = await source.query(statement, [toStored(text)]);
  return {
    events: elementsOf(row!['o_events']),
    more: row!['o_more'] === 't',
    failed: elementsOf(row!['o_failed']),
  };
}

/** SQL conditions of a search that finds many events. A matching event `e` meets at least one. */
function foundConditions(text: string, known: string, values: ParameterList): string[] {
  const start = values.add(toStored(text), 'text');
  const ranges = SEARCHED.map((column) => begins(column, start));
  return [`e.seq IN (SELECT unnest(${known}))`, ...ranges];
}

/** The texts of an event `e` whose start a search compares. Each has an index. */
const SEARCHED = ['e.id', 'e.ordering_key', 'e.reference'] as const;

/** SQL: whether a text begins with another. The range of the index is independent of the collation of the database. */
function begins(column: (typeof SEARCHED)[number], start: string): string {
  const [text, from] = column === 'e.id' ? [column, start] : [indexed(column), indexed(start)];
  return (
    `${column} IS NOT NULL AND ${text} >= ${from} AND ${text} < ${from} || '${LAST}' ` +
    `AND starts_with(${column}, ${start})`
  );
}

/**
 * The function `search` reads a range of an index for each searched text, and the failed deliveries of the newest events. It
 * may find an event twice.
 */
const searchFunction = (schema: string): string => {
  const found = (condition: string): string =>
    `(SELECT e.seq FROM ${schema}.event e WHERE ${condition} LIMIT ${MAX_FOUND + 1})`;
  const id = begins('e.id', 'p_text');
  const [, ...others] = SEARCHED;
  return `
CREATE FUNCTION ${schema}.search(p_text text, OUT o_events bigint[], OUT o_more boolean, OUT o_failed bigint[])
LANGUAGE plpgsql STABLE ${BY_INDEX}
AS $search$
BEGIN
  -- Two ranges of ids, because there may be many expectations between them.
  SELECT array_agg(f.seq) INTO o_events FROM (
    ${found(`${id} AND e.id < '${EXPECTATION_ID}'`)}
    UNION ALL ${found(`${id} AND e.id > '${EXPECTATION_ID}${LAST}'`)}
    ${others.map((column) => `UNION ALL ${found(begins(column, 'p_text'))}`).join(' ')}
  ) f;
  o_more := COALESCE(cardinality(o_events), 0) > ${MAX_FOUND};
  IF o_more THEN o_events := NULL; END IF;
  SELECT array_agg(f.event) INTO o_failed FROM (
    SELECT d.event, d.last_error FROM ${schema}.delivery d WHERE ${HAS_FAILED}
     ORDER BY d.event DESC LIMIT ${MAX_FAILED}
  ) f WHERE strpos(lower(f.last_error COLLATE "C"), lower(p_text COLLATE "C")) > 0;
END $search$;
`;
};

/** The functions `search` and `failures`. */
export const searchFunctions = (schema: string): string =>
  searchFunction(schema) + failuresFunction(schema);
