import type { ClaimedDelivery, IncomingEvent, StoreReceipt } from '../../inbox-store.js';
import type { ConnectionSource } from '../connection/connection-source.js';
import { prepared } from '../connection/database-connection.js';
import type { Prepared, Row } from '../connection/database-connection.js';
import { PostgresInboxError } from '../connection/database-failure.js';
import { isRunning, keyLock, newerHandled } from './ordering.js';
import { BY_INDEX_OR_HASH, epochMs, NOW } from './planner-settings.js';
import { toDate } from './stored-rows.js';
import { RECEIVE_TYPES, rowOf, valuesOf } from './receive-values.js';
import { fromStored } from './stored-text.js';

/** How many repeats of an event are kept. */
const REPEATS = 20;
/** Two are enough unless tombstones are pruned, or copies of the same events stored, between them. */
const MAX_ROUNDS = 5;

/** Stores events of any number of receives in one statement, and returns what became of each. */
export class ReceiveStatement {
  readonly #statement: Prepared;

  constructor(
    private readonly source: ConnectionSource,
    schema: string,
  ) {
    const places = RECEIVE_TYPES.map((type, index) => `$${index + 1}::${type}`).join(', ');
    this.#statement = prepared(`SELECT * FROM ${schema}.receive(${places})`);
  }

  async receive(events: readonly IncomingEvent[]): Promise<StoreReceipt[]> {
    const receipts: StoreReceipt[] = [];
    let open = events.map(rowOf);
    for (let round = 0; open.length > 0; round += 1) {
      if (round === MAX_ROUNDS) {
        throw new PostgresInboxError(
          'The PostgreSQL inbox could neither store an event nor find the one that is in its way.',
          null,
        );
      }
      const rows = await this.source.query(this.#statement, valuesOf(open));
      for (const row of rows) {
        const { place, event } = open[Number(row['o_ord']) - 1]!;
        receipts[place] = toReceipt(event, row);
      }
      open = open.filter(({ place }) => receipts[place] === undefined);
    }
    return receipts;
  }
}

function toReceipt(event: IncomingEvent, row: Row): StoreReceipt {
  const { company, raw } = event;
  const outcome = row['o_outcome'] as StoreReceipt['outcome'];
  if (outcome !== 'stored') {
    const id = row['o_id'] == null ? event.id : fromStored(row['o_id']);
    return { outcome, id, claimed: [], pending: false };
  }
  const claimed = JSON.parse(row['o_claimed'] ?? '[]') as [handler: string, newer: boolean][];
  return {
    outcome,
    id: event.id,
    pending: row['o_pending'] === 't',
    claimed: claimed.map(([handler, newer]): ClaimedDelivery => ({
      company,
      id: event.id,
      handler: fromStored(handler),
      token: 1,
      seq: Number(row['o_seq']),
      attempt: 1,
      receivedAt: toDate(row['o_received_ms']!),
      ageMs: 0,
      raw,
      newerHandled: newer,
      crashes: 0,
    })),
  };
}

/**
 * Stores the events that are new, and returns a row for each event whose outcome is known. Events are numbered in the
 * order of the batch, which is the order of lists and claims, and inserted in an order that is the same for all processes,
 * so that two of them with the same events cannot wait for each other.
 */
export const receiveFunction = (schema: string, catalogLock: string): string => `
CREATE FUNCTION ${schema}.receive(p_companies text[], p_ids text[], p_once bytea[], p_types text[],
  p_occurred_ms float8[], p_keys text[], p_orderings uuid[], p_digests bytea[], p_raws bytea[], p_headers text[],
  p_stale boolean[], p_unhandled boolean[], p_versions bigint[], p_first boolean[],
  p_ords bigint[], p_handlers text[], p_workers uuid[])
RETURNS TABLE (o_ord bigint, o_outcome text, o_seq bigint, o_id text, o_received_ms double precision,
               o_claimed json, o_pending boolean)
LANGUAGE plpgsql VOLATILE ${BY_INDEX_OR_HASH}
AS $receive$
DECLARE
  v_now CONSTANT timestamptz := ${NOW};
  v_version bigint;
  -- Places in p_handlers: whose key is locked here, so that the delivery may be stored as running.
  v_assignable bigint[];
  v_stored bigint[];
  v_repeat record;
BEGIN
  -- 2xx means durable, even if the role or the database does not wait for the disk.
  IF current_setting('synchronous_commit') = 'off' THEN
    PERFORM set_config('synchronous_commit', 'on', true);
  END IF;
  -- A change of the catalog waits for this transaction, so no event is stored with the version before it afterwards.
  PERFORM pg_advisory_xact_lock_shared(${catalogLock});
  SELECT m.catalog_version INTO v_version FROM ${schema}.meta m;

  SELECT array_agg(f.place) INTO v_assignable
    FROM (
      SELECT a.place, a.ordering IS NULL
             OR pg_try_advisory_xact_lock(${keyLock('a.ordering', 'a.handler')}) AS free
        FROM (
          SELECT d.place, d.handler, d.worker, p_orderings[d.ord] AS ordering,
                 row_number() OVER (PARTITION BY p_orderings[d.ord], d.handler ORDER BY d.place) AS nth
            FROM unnest(p_ords, p_handlers, p_workers) WITH ORDINALITY AS d (ord, handler, worker, place)
        ) a
       WHERE a.worker IS NOT NULL AND (a.ordering IS NULL OR a.nth = 1)
         AND NOT EXISTS (SELECT FROM ${schema}.pause p WHERE p.handler IN (a.handler, '*'))
       -- Evaluated as it is, so that each lock is taken once.
      OFFSET 0
    ) f WHERE f.free;

  FOR o_ord, o_seq, o_pending, o_claimed IN
    WITH incoming AS MATERIALIZED (
      SELECT i.*, nextval('${schema}.event_seq_seq') AS seq
        FROM unnest(p_companies, p_ids, p_once, p_types, p_occurred_ms, p_keys, p_orderings, p_digests, p_raws,
                    p_headers, p_stale, p_unhandled, p_versions, p_first)
          WITH ORDINALITY AS i (company, id, once, event_type, occurred_ms, ordering_key, ordering, digest, raw,
                                headers, stale, unhandled, version, first, ord)
       WHERE i.first AND i.version = v_version
    ), stored AS (
      INSERT INTO ${schema}.event (seq, company, id, once, event_type, occurred_at, received_at, ordering_key,
                                   ordering, digest, raw, headers, stale, unhandled)
      SELECT i.seq, i.company, i.id, i.once, i.event_type, to_timestamp(i.occurred_ms / 1000), v_now,
             i.ordering_key, i.ordering, i.digest, i.raw, i.headers, i.stale, i.unhandled
        FROM incoming i ORDER BY i.company, i.id
      ON CONFLICT DO NOTHING
      RETURNING seq, ordering, occurred_at
    ), delivered AS (
      INSERT INTO ${schema}.delivery (event, handler, ordering, occurred_at, state, held, due_at, worker, token,
                                      attempts, started_at)
      SELECT s.seq, h.handler, s.ordering, s.occurred_at, CASE WHEN r.run THEN 'running' ELSE 'pending' END,
             r.held, CASE WHEN NOT r.run THEN v_now END, CASE WHEN r.run THEN h.worker END,
             r.run::integer, r.run::integer, CASE WHEN r.run THEN v_now END
        FROM stored s
        JOIN incoming i ON i.seq = s.seq
        JOIN unnest(p_ords, p_handlers, p_workers) WITH ORDINALITY AS h (ord, handler, worker, place) ON h.ord = i.ord
       CROSS JOIN LATERAL (
         SELECT h.place = ANY (v_assignable) AS assignable,
                CASE WHEN s.ordering IS NOT NULL AND h.place = ANY (v_assignable)
                     THEN ${isRunning(schema, 's.ordering', 'h.handler')} ELSE false END AS busy
       ) k
       CROSS JOIN LATERAL (
         SELECT k.busy AS held, COALESCE(k.assignable, false) AND NOT k.busy AND (s.ordering IS NULL OR NOT (
           EXISTS (SELECT FROM ${schema}.delivery w
                    WHERE w.held AND w.handler = h.handler AND w.ordering = s.ordering)
           OR EXISTS (SELECT FROM ${schema}.delivery w
                       WHERE w.ordering = s.ordering AND w.handler = h.handler AND w.due_at <= v_now
                         AND w.state = 'pending' AND NOT w.held AND w.ordering IS NOT NULL))) AS run
       ) r
      RETURNING event, handler, state, ordering, occurred_at
    )
    SELECT i.ord, i.seq, d.pending, d.claimed
      FROM stored s JOIN incoming i ON i.seq = s.seq
      LEFT JOIN (
        SELECT n.event, bool_or(n.state = 'pending') AS pending,
               json_agg(json_build_array(n.handler, n.ordering IS NOT NULL
                 AND ${newerHandled(schema, 'n.ordering', 'n.handler', 'n.occurred_at')}))
                 FILTER (WHERE n.state = 'running') AS claimed
          FROM delivered n GROUP BY n.event
      ) d ON d.event = s.seq
  LOOP
    o_outcome := 'stored';
    o_received_ms := ${epochMs('v_now')};
    v_stored := v_stored || o_ord;
    RETURN NEXT;
  END LOOP;
  IF cardinality(v_stored) = cardinality(p_ids) THEN RETURN; END IF;

  -- The event that is in the way of each: the one of its id, or else of its once key.
  RETURN QUERY
  SELECT i.ord, CASE WHEN k.id IS NULL THEN 'outdated'
                     WHEN k.id = i.id AND k.digest <> i.digest THEN 'conflict' ELSE 'duplicate' END,
         NULL::bigint, k.id, NULL::double precision, NULL::json, NULL::boolean
    FROM unnest(p_companies, p_ids, p_once, p_digests, p_versions)
      WITH ORDINALITY AS i (company, id, once, digest, version, ord)
    LEFT JOIN LATERAL (
      SELECT x.id, x.digest FROM (
        SELECT a.id, a.digest, 1 AS rank FROM ${schema}.event a WHERE a.company = i.company AND a.id = i.id
        UNION ALL
        SELECT b.id, b.digest, 2 FROM ${schema}.event b WHERE b.once = i.once AND b.once IS NOT NULL
      ) x ORDER BY x.rank LIMIT 1
    ) k ON true
   WHERE i.ord <> ALL (COALESCE(v_stored, '{}')) AND (k.id IS NOT NULL OR i.version <> v_version);

  -- Duplicates by once key with another id, in the same order in all processes.
  FOR v_repeat IN
    SELECT e.seq, i.id
      FROM unnest(p_companies, p_ids, p_once) WITH ORDINALITY AS i (company, id, once, ord)
      JOIN ${schema}.event e ON e.once = i.once AND e.once IS NOT NULL
     WHERE i.ord <> ALL (COALESCE(v_stored, '{}')) AND e.id <> i.id
       AND NOT EXISTS (SELECT FROM ${schema}.event own WHERE own.company = i.company AND own.id = i.id)
     ORDER BY e.seq, i.ord
  LOOP
    UPDATE ${schema}.event e
       SET repeats = CASE WHEN jsonb_array_length(e.repeats) >= ${REPEATS} THEN e.repeats - 0
                     ELSE COALESCE(e.repeats, '[]') END
                     || jsonb_build_array(jsonb_build_array(v_repeat.id, (${epochMs('v_now')})::bigint))
     WHERE e.seq = v_repeat.seq AND NOT EXISTS (
       SELECT FROM jsonb_array_elements(e.repeats) AS known (entry) WHERE known.entry ->> 0 = v_repeat.id);
  END LOOP;
END $receive$;
`;
