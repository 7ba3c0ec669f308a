import { BY_INDEX_OR_HASH } from './schema.claims.js';

/** What {@link receipts} makes of a batch: a column an array, an event a place. */
export const BATCH_TYPES = [
  'text[]',
  'text[]',
  'bytea[]',
  'text[]',
  'float8[]',
  'text[]',
  'uuid[]',
  'bytea[]',
  'bytea[]',
  'boolean[]',
  'boolean[]',
  'text[]',
  'bytea[]',
  'text[]',
  'bigint[]',
  'text[]',
] as const;
/** What looks for the events that are in the way of a batch. */
export const KEY_TYPES = ['text[]', 'text[]', 'bytea[]', 'text[]', 'bytea[]'] as const;

/**
 * The functions that receives are made of. In the database for their plans: one that is kept for a statement may
 * have been made when the table was a page, and would read all of it for each event as it grows.
 */
export const receipts = (schema: string): string => `
-- Stores the events that are new, each with its deliveries, and tells which they were. Numbered as they came,
-- which is the order they are listed and claimed in; inserted in an order that is the same for all instances,
-- so that two that insert the same events cannot wait for each other.
CREATE OR REPLACE FUNCTION ${schema}.receive(${BATCH_TYPES.join(', ')})
RETURNS TABLE (o_ord bigint, o_safe text) LANGUAGE plpgsql ${BY_INDEX_OR_HASH}
AS $receipt$
BEGIN
RETURN QUERY
WITH incoming AS MATERIALIZED (
  SELECT i.*, nextval('${schema}.events_seq_seq') AS seq
    FROM unnest($1, $2, $3, $4, $5, $6,
                $7, $8, $9, $10, $11, $12, $13, $14)
      WITH ORDINALITY AS i (company, id, dedupe, event_type, occurred_ms, ordering_key,
                            ordering, digest, raw, unhandled, stale, other_id, other_dedupe, headers, ord)
), stored AS (
  INSERT INTO ${schema}.events (seq, company, id, dedupe, event_type, occurred_at, ordering_key,
                                ordering, digest, raw, unhandled, stale, headers)
  SELECT seq, company, id, dedupe, event_type, to_timestamp(occurred_ms / 1000), ordering_key,
         ordering, digest, raw, unhandled, stale, headers
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
    JOIN unnest($15, $16) AS h (ord, handler) ON h.ord = i.ord
)
SELECT i.ord,
       -- 2xx means safe, also where the role or the database waives waiting for the disk.
       CASE WHEN current_setting('synchronous_commit') = 'off'
            THEN set_config('synchronous_commit', 'on', true) END AS safe
  FROM stored s JOIN incoming i ON i.seq = s.seq;
END $receipt$;

-- The stored event that stands in the way of each: the one of its id, or else of its dedupe key.
CREATE OR REPLACE FUNCTION ${schema}.known(${KEY_TYPES.join(', ')})
RETURNS TABLE (o_ord bigint, o_id text, o_digest text) LANGUAGE plpgsql STABLE ${BY_INDEX_OR_HASH}
AS $known$
BEGIN
RETURN QUERY
SELECT i.ord, e.id, encode(e.digest, 'hex') AS digest
  FROM unnest($1, $2, $3, $4, $5)
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
 ) e;
END $known$;
`;
