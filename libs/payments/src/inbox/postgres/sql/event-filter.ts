import type { EventFilter } from '../../inbox-store.js';
import type { Value } from '../connection/database-connection.js';
import { toStored } from './stored-text.js';

/** The numbered parameters of a statement. */
export class Values {
  readonly all: Value[] = [];

  /** The placeholder of a value. */
  add(value: Value, type: string): string {
    this.all.push(value);
    return `$${this.all.length}::${type}`;
  }
}

/** Conditions for an event `e`. */
export function conditions(schema: string, filter: EventFilter, values: Values): string[] {
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
