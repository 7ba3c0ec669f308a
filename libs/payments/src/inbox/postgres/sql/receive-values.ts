import { hash } from 'node:crypto';
import { TEST_EVENT_TYPE } from '../../../events/payment-event.js';
import type { IncomingEvent } from '../../store/inbox-store.js';
import { byteaArray, textArray } from '../connection/binary-arrays.js';
import type { Value } from '../connection/database-connection.js';
import { toStored } from './stored-text.js';

/** Parameters of the function: an array for each column of the events, then one for each column of the deliveries. */
export const RECEIVE_TYPES =
  'text[] text[] bytea[] text[] float8[] text[] uuid[] bytea[] bytea[] text[] boolean[] boolean[] bigint[] boolean[] bigint[] text[] uuid[] uuid[] float8[]'.split(
    ' ',
  );

/** An event with its hashes, and its place in the batch. */
export interface EventRow {
  readonly place: number;
  readonly event: IncomingEvent;
  readonly once: Buffer | null;
  readonly ordering: string | null;
  readonly digest: Buffer;
}

/** A delivery of the event at `place` in the rows, and the worker that may run it at once. */
export interface DeliveryRow {
  readonly place: number;
  readonly handler: string;
  readonly worker: string | null;
}

export function rowOf(event: IncomingEvent, place: number): EventRow {
  const { company, eventType, orderingKey, onceKey } = event;
  const ordering = orderingKey === null ? null : sha256(`${company}\n${toStored(orderingKey)}`);
  return {
    place,
    event,
    once: onceKey === null ? null : sha256(JSON.stringify([company, eventType, onceKey])),
    ordering: ordering === null ? null : ordering.subarray(0, 16).toString('hex'),
    digest: sha256(event.raw),
  };
}

/** The deliveries of all rows. Of those with the same ordering key and handler, only the first may run at once. */
export function deliveriesOf(rows: readonly EventRow[]): DeliveryRow[] {
  const busy = new Set<string>();
  return rows.flatMap(({ event: { handlers, assign }, ordering }, place) =>
    [...new Set(handlers)].map((handler) => {
      let worker = assign?.handlers.includes(handler) ? assign.worker : null;
      if (worker !== null && ordering !== null) {
        const key = `${ordering} ${handler}`;
        if (busy.has(key)) worker = null;
        busy.add(key);
      }
      return { place, handler, worker };
    }),
  );
}

/** The parameters of the function. */
export function valuesOf(rows: readonly EventRow[], deliveries: readonly DeliveryRow[]): Value[] {
  const firsts = firstOfEachKey(rows);
  return [
    textArray(rows.map(({ event }) => event.company)),
    textArray(rows.map(({ event }) => toStored(event.id))),
    byteaArray(rows.map(({ once }) => once)),
    textArray(rows.map(({ event }) => toStored(event.eventType))),
    rows.map(({ event }) => event.occurredAt.getTime()),
    textArray(rows.map(({ event: { orderingKey } }) => orderingKey && toStored(orderingKey))),
    rows.map(({ ordering }) => ordering),
    byteaArray(rows.map(({ digest }) => digest)),
    byteaArray(rows.map(({ event }) => event.raw)),
    textArray(rows.map(({ event }) => headersOf(event))),
    rows.map(({ event }) => String(event.stale)),
    rows.map(({ event }) => String(needsHandler(event))),
    rows.map(({ event }) => event.catalogVersion),
    rows.map((row) => String(firsts.has(row))),
    deliveries.map(({ place }) => place + 1),
    textArray(deliveries.map(({ handler }) => toStored(handler))),
    deliveries.map(({ worker }) => worker),
    deliveries.map(({ place }) => rows[place]!.ordering),
    deliveries.map(({ place }) => rows[place]!.event.occurredAt.getTime()),
  ];
}

/** The first of each id and of each once key. The others wait for what becomes of it. */
function firstOfEachKey(rows: readonly EventRow[]): Set<EventRow> {
  const taken = new Set<string>();
  return new Set(
    rows.filter(({ event, once }) => {
      const keys = [`id ${event.company} ${event.id}`];
      if (once !== null) keys.push(`once ${once.toString('latin1')}`);
      if (keys.some((key) => taken.has(key))) return false;
      for (const key of keys) taken.add(key);
      return true;
    }),
  );
}

/** Whether it has no delivery although its type needs one; stale or not. */
function needsHandler({ eventType, handlers }: IncomingEvent): boolean {
  return handlers.length === 0 && eventType !== TEST_EVENT_TYPE;
}

/** As JSON; `null` if there are none. */
function headersOf({ headers }: IncomingEvent): string | null {
  return Object.keys(headers).length === 0 ? null : toStored(JSON.stringify(headers));
}

function sha256(data: string | Buffer): Buffer {
  return hash('sha256', data, 'buffer');
}
