import type { EventFilter, EventState } from '../inbox/inbox-store.js';
import type { ListQuery } from '../inbox/payment-inbox.js';
import { badRequest } from './console-refusal.js';
import { queryOf } from './console-request.js';
import type { ConsoleRequest } from './console-request.js';
import { RequestFields } from './request-fields.js';

const STATES: readonly EventState[] = [
  'pending',
  'running',
  'done',
  'dead',
  'skipped',
  'unhandled',
  'stale',
];
const FILTER = ['company', 'eventType', 'handler', 'state', 'search', 'from', 'to'];
const COMPANY = { max: 100, pattern: /^[\w.~-]+$/ };
const ID = { max: 255 };
export const HANDLER = { max: 200 };

/** How an event is named. */
export interface EventName {
  readonly company: string;
  readonly id: string;
}

/** Minutes of activity to show. Default 60. */
export function readMinutes(request: ConsoleRequest): number {
  const fields = RequestFields.ofQuery(queryOf(request), ['minutes']);
  return fields.whole('minutes', { min: 1, max: 1440 }) ?? 60;
}

/** Which page of the list to show. */
export function readList(request: ConsoleRequest): ListQuery {
  const known = [...FILTER, 'order', 'limit', 'after'];
  const fields = RequestFields.ofQuery(queryOf(request), known);
  return {
    ...readFilter(fields),
    order: fields.choice('order', ['newest', 'oldest']) ?? 'newest',
    limit: fields.whole('limit', { min: 1, max: 200 }) ?? 50,
    after: fields.text('after', { max: 64, pattern: /^[\d.-]+$/ }) ?? null,
  };
}

/** The event that is asked for in the query. */
export function readNamedEvent(request: ConsoleRequest): EventName {
  const fields = RequestFields.ofQuery(queryOf(request), ['company', 'id']);
  return eventName(fields, 'The query names no event: it needs "company" and "id".');
}

/** The events that were selected one by one: 1 to 1,000, each once. */
export function readSelected(list: unknown): EventName[] {
  if (!Array.isArray(list) || list.length < 1 || list.length > 1000) {
    throw badRequest('"events" must be a list of 1 to 1,000 events, each with "company" and "id".');
  }
  const selected = new Map<string, EventName>();
  for (const [index, item] of list.entries()) {
    const fields = RequestFields.ofBody(item, ['company', 'id'], `events[${index}].`);
    const name = eventName(fields, `"events[${index}]" needs "company" and "id".`);
    selected.set(`${name.company}/${name.id}`, name);
  }
  return [...selected.values()];
}

/** Which events are meant, of a query or of the `filter` of a body. */
function readFilter(fields: RequestFields): EventFilter {
  const filter = {
    company: fields.text('company', COMPANY),
    eventType: fields.text('eventType', { max: 255 }),
    handler: fields.text('handler', HANDLER),
    state: fields.choice('state', STATES),
    search: fields.text('search', { max: 255 }),
    from: fields.time('from'),
    to: fields.time('to'),
  };
  return Object.fromEntries(Object.entries(filter).filter(([, value]) => value !== undefined));
}

/** The `filter` of a body. */
export function readBodyFilter(filter: unknown): EventFilter {
  return readFilter(RequestFields.ofBody(filter, FILTER, 'filter.'));
}

function eventName(fields: RequestFields, missing: string): EventName {
  const company = fields.text('company', COMPANY);
  const id = fields.text('id', ID);
  if (company === undefined || id === undefined) throw badRequest(missing);
  return { company, id };
}
