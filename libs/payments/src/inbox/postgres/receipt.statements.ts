import { byteaArray, textArray } from './binary.arrays.js';
import { prepared } from './database.connection.js';
import type { Prepared, Value } from './database.connection.js';
import type { EventRow } from './receipt.batch.js';
import { toStored } from './stored.text.js';

/**
 * Stores the events that are new, each with its deliveries, and tells which they were. Numbered as they came,
 * which is the order they are listed and claimed in; inserted in an order that is the same for all instances,
 * so that two that insert the same events cannot wait for each other.
 */
export const insertStatement = (schema: string): Prepared =>
  prepared(`
WITH incoming AS MATERIALIZED (
  SELECT i.*, nextval('${schema}.events_seq_seq') AS seq
    FROM unnest($1::text[], $2::text[], $3::bytea[], $4::text[], $5::float8[], $6::text[],
                $7::uuid[], $8::bytea[], $9::bytea[], $10::boolean[], $11::text[], $12::bytea[], $13::text[])
      WITH ORDINALITY AS i (company, id, dedupe, event_type, occurred_ms, ordering_key,
                            ordering, digest, raw, unhandled, other_id, other_dedupe, headers, ord)
), stored AS (
  INSERT INTO ${schema}.events (seq, company, id, dedupe, event_type, occurred_at, ordering_key,
                                ordering, digest, raw, unhandled, headers)
  SELECT seq, company, id, dedupe, event_type, to_timestamp(occurred_ms / 1000), ordering_key,
         ordering, digest, raw, unhandled, headers
    FROM incoming i
   WHERE 0 = (SELECT count(*) FROM ${schema}.events o
               WHERE o.company = i.company AND o.id = i.other_id AND o.dedupe IS NULL)
     AND 0 = (SELECT count(*) FROM ${schema}.events o
               WHERE o.company = i.company AND o.dedupe = i.other_dedupe)
   ORDER BY company, id
  ON CONFLICT DO NOTHING
  RETURNING seq, ordering, received_at
), delivered AS (
  INSERT INTO ${schema}.deliveries (event, handler, state, due_at, ordering)
  SELECT s.seq, h.handler, 'pending', s.received_at, s.ordering
    FROM stored s
    JOIN incoming i ON i.seq = s.seq
    JOIN unnest($14::bigint[], $15::text[]) AS h (ord, handler) ON h.ord = i.ord
)
SELECT i.ord,
       -- 2xx means safe, also where the role or the database waives waiting for the disk.
       CASE WHEN current_setting('synchronous_commit') = 'off'
            THEN set_config('synchronous_commit', 'on', true) END AS safe
  FROM stored s JOIN incoming i ON i.seq = s.seq`);

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
    rows.map(({ event }) => String(event.handlers.length === 0)),
    otherIds,
    otherDedupes,
    textArray(rows.map(({ event }) => headersOf(event))),
    handlers.map(({ ord }) => ord),
    textArray(handlers.map(({ handler }) => handler)),
  ];
}

/** As JSON; `null` where there are none. */
function headersOf({ headers }: EventRow['event']): string | null {
  return Object.keys(headers).length === 0 ? null : toStored(JSON.stringify(headers));
}

/** The stored event that stands in the way of each: the one of its id, or else of its dedupe key. */
export const knownStatement = (schema: string): Prepared =>
  prepared(`
SELECT i.ord, e.id, encode(e.digest, 'hex') AS digest
  FROM unnest($1::text[], $2::text[], $3::bytea[], $4::text[], $5::bytea[])
    WITH ORDINALITY AS i (company, id, dedupe, other_id, other_dedupe, ord)
 CROSS JOIN LATERAL (
   SELECT known.id, known.digest FROM (
     SELECT a.id, a.digest, 1 AS rank FROM ${schema}.events a
      WHERE a.company = i.company AND a.id = i.id
     UNION ALL
     SELECT b.id, b.digest, 2 FROM ${schema}.events b
      WHERE b.company = i.company AND b.dedupe = i.dedupe
     UNION ALL
     SELECT c.id, c.digest, 2 FROM ${schema}.events c
      WHERE c.company = i.company AND c.id = i.other_id AND c.dedupe IS NULL
     UNION ALL
     SELECT d.id, d.digest, 2 FROM ${schema}.events d
      WHERE d.company = i.company AND d.dedupe = i.other_dedupe
   ) known ORDER BY known.rank LIMIT 1
 ) e`);

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
