import { TEST_EVENT_TYPE } from '../../events/payment-event.js';
import { byteaArray, textArray } from './binary.arrays.js';
import { prepared } from './database.connection.js';
import type { Prepared, Value } from './database.connection.js';
import type { EventRow } from './receipt.batch.js';
import { BATCH_TYPES, KEY_TYPES } from './schema.receipts.js';
import { toStored } from './stored.text.js';

/** See `receive` of `schema.receipts.ts`. */
export const insertStatement = (schema: string): Prepared =>
  prepared(`SELECT o_ord AS ord, o_safe AS safe FROM ${schema}.receive(${placesOf(BATCH_TYPES)})`);

export function insertValues(rows: readonly EventRow[]): Value[] {
  const handlers = rows.flatMap(({ event }, index) =>
    [...new Set(event.handlers)].map((handler) => ({ ord: index + 1, handler: toStored(handler) })),
  );
  const [companies, ids, dedupes, otherIds, otherDedupes] = keysOf(rows);
  return [
    companies,
    ids,
    dedupes,
    textArray(rows.map(({ event }) => toStored(event.eventType))),
    rows.map(({ event }) => event.occurredAt.getTime()),
    textArray(
      rows.map(({ event }) => (event.orderingKey === null ? null : toStored(event.orderingKey))),
    ),
    rows.map(({ ordering }) => ordering),
    byteaArray(rows.map(({ digest }) => digest)),
    byteaArray(rows.map(({ event }) => event.raw)),
    rows.map(({ event }) => String(needsHandler(event))),
    rows.map(({ event }) => String(event.stale)),
    otherIds,
    otherDedupes,
    textArray(rows.map(({ event }) => headersOf(event))),
    handlers.map(({ ord }) => ord),
    textArray(handlers.map(({ handler }) => handler)),
  ];
}

/** Whether it has no delivery, stale or not. A test needs no handler. */
function needsHandler({ eventType, handlers }: EventRow['event']): boolean {
  return handlers.length === 0 && eventType !== TEST_EVENT_TYPE;
}

/** As JSON; `null` where there are none. */
function headersOf({ headers }: EventRow['event']): string | null {
  return Object.keys(headers).length === 0 ? null : toStored(JSON.stringify(headers));
}

/** See `known` of `schema.receipts.ts`. */
export const knownStatement = (schema: string): Prepared =>
  prepared(
    `SELECT o_ord AS ord, o_id AS id, o_digest AS digest FROM ${schema}.known(${placesOf(KEY_TYPES)})`,
  );

export function knownValues(rows: readonly EventRow[]): Value[] {
  return keysOf(rows);
}

/**
 * Companies, ids, dedupe keys where they are not the id, and where an equal dedupe key would be that is kept
 * the other way: as the id of another event, or apart from it.
 */
function keysOf(rows: readonly EventRow[]): [Value, Value, Value, Value, Value] {
  return [
    textArray(rows.map(({ event }) => event.company)),
    textArray(rows.map(({ id }) => id)),
    byteaArray(rows.map(({ ownKey, key }) => (ownKey === null ? null : key))),
    textArray(rows.map(({ ownKey }) => ownKey)),
    byteaArray(rows.map(({ ownKey, key }) => (ownKey === null ? key : null))),
  ];
}

function placesOf(types: readonly string[]): string {
  return types.map((type, index) => `$${index + 1}::${type}`).join(', ');
}
