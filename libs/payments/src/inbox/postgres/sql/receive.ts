import type { ClaimedDelivery, IncomingEvent, StoreReceipt } from '../../store/inbox-store.js';
import type { ConnectionSource } from '../connection/connection-source.js';
import { prepared } from '../connection/database-connection.js';
import type { Prepared, Row } from '../connection/database-connection.js';
import { PostgresInboxError } from '../connection/database-failure.js';
import { isRunning, LOOKED_UP, keyLock, newerHandled } from './ordering.js';
import { BY_INDEX, epochMs, NOW } from './planner-settings.js';
import { elementsOf, toDate } from './stored-rows.js';
import { deliveriesOf, RECEIVE_TYPES, rowOf, valuesOf } from './receive-values.js';
import type { DeliveryRow, EventRow } from './receive-values.js';
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
          'The PostgreSQL inbox could neither store an event nor find the stored event that it conflicts with.',
          null,
        );
      }
      const deliveries = deliveriesOf(open);
      const [row] = await this.source.query(this.#statement, valuesOf(open, deliveries));
      for (const [place, receipt] of storedReceipts(open, deliveries, row!)) {
        receipts[place] = receipt;
      }
      for (const [ord, outcome, id] of JSON.parse(row!['o_others'] ?? '[]') as Other[]) {
        const { place, event } = open[ord - 1]!;
        const known = id === null ? event.id : fromStored(id);
        receipts[place] = { outcome, id: known, claimed: [], pending: false };
      }
      open = open.filter(({ place }) => receipts[place] === undefined);
    }
    return receipts;
  }
}

/** An event that was not stored: its place from 1, the outcome, and the id of the stored event that it conflicts with. */
type Other = [ord: number, outcome: StoreReceipt['outcome'], id: string | null];

/** The receipts of the events that were stored, with their places in the batch. */
function storedReceipts(
  rows: readonly EventRow[],
  deliveries: readonly DeliveryRow[],
  row: Row,
): Map<number, StoreReceipt & { claimed: ClaimedDelivery[] }> {
  const seqs = elementsOf(row['o_seqs']);
  const runs = elementsOf(row['o_runs']);
  const newer = elementsOf(row['o_newer']);
  const receivedAt = toDate(row['o_received_ms']!);
  const receipts = new Map<
    number,
    StoreReceipt & { claimed: ClaimedDelivery[]; pending: boolean }
  >();
  for (const [index, { place, event }] of rows.entries()) {
    if (seqs[index] === 'NULL') continue;
    receipts.set(place, { outcome: 'stored', id: event.id, claimed: [], pending: false });
  }
  for (const [index, { place, handler }] of deliveries.entries()) {
    const { place: placeInBatch, event } = rows[place]!;
    const receipt = receipts.get(placeInBatch);
    if (receipt === undefined) continue;
    if (runs[index] !== 't') {
      receipt.pending = true;
      continue;
    }
    receipt.claimed.push({
      company: event.company,
      id: event.id,
      handler,
      token: 1,
      seq: Number(seqs[place]),
      attempt: 1,
      receivedAt,
      ageMs: 0,
      raw: event.raw,
      newerHandled: newer[index] === 't',
      crashes: 0,
    });
  }
  return receipts;
}

/**
 * Stores the events that are new. Returns one row: the number of each event that it stored, whether each delivery runs
 * under its worker, whether its handler has done a later event, and the outcomes of the events that it did not store.
 * Several small statements instead of one: to set up a join of all these arrays takes longer than to run it.
 *
 * Events are numbered in the order of the batch, which is the order of lists and claims, and inserted in an order that is
 * the same for all processes, so that two of them with the same events or transactions do not wait for each other.
 */
export const receiveFunction = (schema: string, catalogLock: string): string => `
CREATE FUNCTION ${schema}.receive(p_companies text[], p_ids text[], p_once bytea[], p_types text[],
  p_occurred_ms float8[], p_keys text[], p_orderings uuid[], p_digests bytea[], p_raws bytea[], p_headers text[],
  p_stale boolean[], p_unhandled boolean[], p_versions bigint[], p_first boolean[],
  d_ords bigint[], d_handlers text[], d_workers uuid[], d_orderings uuid[], d_occurred_ms float8[])
RETURNS TABLE (o_received_ms double precision, o_seqs bigint[], o_runs boolean[], o_newer boolean[], o_others json)
LANGUAGE plpgsql VOLATILE ${BY_INDEX}
AS $receive$
DECLARE
  v_now CONSTANT timestamptz := ${NOW};
  v_version bigint;
  v_paused text[];
  -- Of each delivery: whether its key is locked here, so that it may be stored as running.
  v_free boolean[];
  v_held boolean[];
  v_stored bigint[];
  v_repeat record;
BEGIN
  -- 2xx means durable, even if the role or the database does not wait for the disk.
  IF current_setting('synchronous_commit') = 'off' THEN
    PERFORM set_config('synchronous_commit', 'on', true);
  END IF;
  -- A change of the catalog waits for this transaction, so no event is stored with the version before it afterwards.
  PERFORM pg_advisory_xact_lock_shared(${catalogLock});
  SELECT m.catalog_version, ARRAY(SELECT p.handler FROM ${schema}.pause p) INTO v_version, v_paused
    FROM ${schema}.meta m;

  IF array_remove(d_workers, NULL) <> '{}' AND '*' <> ALL (v_paused) THEN
    SELECT array_agg(CASE WHEN d.worker IS NULL OR d.handler = ANY (v_paused) THEN false
                          WHEN d.ordering IS NULL THEN true
                          ELSE pg_try_advisory_xact_lock(${keyLock('d.ordering', 'd.handler')}) END)
      INTO v_free FROM unnest(d_workers, d_handlers, d_orderings) AS d (worker, handler, ordering);
    -- A new statement after the locks; see ordering.ts.
    SELECT array_agg(c.code = 'run'), array_agg(c.code = 'held'),
           array_agg(CASE WHEN c.code = 'run' AND c.ordering IS NOT NULL
                          THEN ${newerHandled(schema, 'c.ordering', 'c.handler', 'to_timestamp(c.occurred_ms / 1000)')}
                          ELSE false END)
      INTO o_runs, v_held, o_newer
      FROM (
        SELECT d.*, CASE
                 WHEN NOT d.free THEN 'wait'
                 WHEN d.ordering IS NULL THEN 'run'
                 WHEN ${isRunning(schema, 'd.ordering', 'd.handler')} THEN 'held'
                 WHEN EXISTS (SELECT FROM ${schema}.delivery w
                               WHERE w.held AND w.handler = d.handler AND w.ordering = d.ordering ${LOOKED_UP}) THEN 'wait'
                 WHEN EXISTS (SELECT FROM ${schema}.delivery w
                               WHERE w.ordering = d.ordering AND w.handler = d.handler AND w.due_at <= v_now
                                 AND w.state = 'pending' AND NOT w.held AND w.ordering IS NOT NULL ${LOOKED_UP}) THEN 'wait'
                 ELSE 'run' END AS code
          FROM unnest(v_free, d_handlers, d_orderings, d_occurred_ms) AS d (free, handler, ordering, occurred_ms)
        -- Evaluated as it is, so that each is looked up once.
        OFFSET 0
      ) c;
  END IF;

  SELECT array_agg(CASE WHEN i.first AND i.version = v_version THEN nextval('${schema}.event_seq_seq') END)
    INTO o_seqs FROM unnest(p_first, p_versions) AS i (first, version);
  WITH stored AS (
    INSERT INTO ${schema}.event (seq, company, id, once, event_type, occurred_at, received_at, ordering_key,
                                 ordering, digest, raw, headers, stale, unhandled)
    SELECT i.seq, i.company, i.id, i.once, i.event_type, to_timestamp(i.occurred_ms / 1000), v_now,
           i.ordering_key, i.ordering, i.digest, i.raw, i.headers, i.stale, i.unhandled
      FROM unnest(o_seqs, p_companies, p_ids, p_once, p_types, p_occurred_ms, p_keys, p_orderings, p_digests, p_raws,
                  p_headers, p_stale, p_unhandled)
        AS i (seq, company, id, once, event_type, occurred_ms, ordering_key, ordering, digest, raw, headers, stale,
              unhandled)
     WHERE i.seq IS NOT NULL ORDER BY i.once, i.company, i.id
    ON CONFLICT DO NOTHING
    RETURNING seq
  )
  SELECT array_agg(s.seq) INTO v_stored FROM stored s;
  IF cardinality(v_stored) IS DISTINCT FROM cardinality(p_ids) THEN
    SELECT array_agg(CASE WHEN i.seq = ANY (v_stored) THEN i.seq END) INTO o_seqs FROM unnest(o_seqs) AS i (seq);
  END IF;

  INSERT INTO ${schema}.delivery (event, handler, ordering, occurred_at, state, held, due_at, worker, token,
                                  attempts, started_at)
  SELECT d.seq, d.handler, d.ordering, to_timestamp(d.occurred_ms / 1000),
         CASE WHEN d.run THEN 'running' ELSE 'pending' END, d.held, CASE WHEN NOT d.run THEN v_now END,
         CASE WHEN d.run THEN d.worker END, d.run::integer, d.run::integer, CASE WHEN d.run THEN v_now END
    FROM (
      SELECT o_seqs[n.ord] AS seq, n.handler, n.worker, n.ordering, n.occurred_ms,
             COALESCE(n.run, false) AS run, COALESCE(n.held, false) AS held
        FROM unnest(d_ords, d_handlers, d_workers, d_orderings, d_occurred_ms, o_runs, v_held)
          AS n (ord, handler, worker, ordering, occurred_ms, run, held)
    ) d WHERE d.seq IS NOT NULL;

  o_received_ms := ${epochMs('v_now')};
  IF cardinality(v_stored) = cardinality(p_ids) THEN
    RETURN NEXT;
    RETURN;
  END IF;

  -- The stored event that each conflicts with: the one of its id, or else of its once key.
  SELECT json_agg(json_build_array(i.ord, CASE WHEN k.id IS NULL THEN 'outdated'
                                               WHEN k.id = i.id AND k.digest <> i.digest THEN 'conflict'
                                               ELSE 'duplicate' END, k.id)) INTO o_others
    FROM unnest(o_seqs, p_companies, p_ids, p_once, p_digests, p_versions)
      WITH ORDINALITY AS i (seq, company, id, once, digest, version, ord)
    LEFT JOIN LATERAL (
      SELECT x.id, x.digest FROM (
        SELECT a.id, a.digest, 1 AS rank FROM ${schema}.event a WHERE a.company = i.company AND a.id = i.id
        UNION ALL
        SELECT b.id, b.digest, 2 FROM ${schema}.event b WHERE b.once = i.once AND b.once IS NOT NULL
      ) x ORDER BY x.rank LIMIT 1
    ) k ON true
   WHERE i.seq IS NULL AND (k.id IS NOT NULL OR i.version <> v_version);
  RETURN NEXT;

  -- Duplicates by once key with another id, in the same order in all processes.
  FOR v_repeat IN
    SELECT e.seq, i.id
      FROM unnest(o_seqs, p_companies, p_ids, p_once) WITH ORDINALITY AS i (seq, company, id, once, ord)
      JOIN ${schema}.event e ON e.once = i.once AND e.once IS NOT NULL
     WHERE i.seq IS NULL AND e.id <> i.id
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
