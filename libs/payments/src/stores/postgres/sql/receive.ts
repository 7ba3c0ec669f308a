import type {
  ClaimedDelivery,
  EventSource,
  IncomingEvent,
  StoreReceipt,
} from '../../../inbox/store/inbox-store.js';
import type { ConnectionSource } from '../connection/connection-source.js';
import { PostgresInboxError, prepared } from '../connection/database-connection.js';
import type { PreparedStatement, ResultRow } from '../connection/database-connection.js';
import { isRunning, keyLock } from './ordering.js';
import { deliveriesOf, newEventOf, RECEIVE_TYPES, valuesOf } from './receive-values.js';
import type { NewDelivery, NewEvent } from './receive-values.js';
import { countsOnce } from '../../sql/conditions.js';
import { BY_INDEX, isOnceOf, LOOKED_UP, NOW_MS } from './schema.js';
import { fromStored } from '../../sql/stored-text.js';
import { elementsOf, toDate } from './stored-rows.js';

/** How many repeats of an event are kept. */
const MAX_REPEATS = 20;
/**
 * How often the function `receive` runs for one batch. Two rounds are enough, unless tombstones are pruned or other
 * processes store copies of the same events between the rounds.
 */
const MAX_ROUNDS = 5;

/** The names and types of the parameters of the function `receive`. */
export const RECEIVE_PARAMETERS = `p_companies text[], p_ids text[], p_once boolean[], p_types text[],
  p_occurred_ms bigint[], p_keys text[], p_orderings uuid[], p_digests bytea[], p_raws bytea[], p_headers text[],
  p_stale boolean[], p_unhandled boolean[], p_versions bigint[], p_first boolean[],
  p_sources text[], p_fulfils boolean[], p_references text[], s_references text[], s_amounts text[], s_currencies text[],
  d_positions bigint[], d_handlers text[], d_workers uuid[], d_orderings uuid[]`;

/** Their names. */
export const RECEIVE_NAMES = RECEIVE_PARAMETERS.split(',')
  .map((parameter) => parameter.trim().split(' ')[0])
  .join(', ');

/** The columns of its result, which {@link receiptsOf} reads. */
export const RECEIPT_COLUMNS =
  'o_received_ms bigint, o_seqs bigint[], o_runs boolean[], o_not_stored json, o_fulfilled json';

/** Stores the events of any number of webhook requests in one statement, and returns a receipt for each event. */
export class ReceiveStatement {
  readonly #statement: PreparedStatement;

  constructor(
    private readonly source: ConnectionSource,
    schema: string,
  ) {
    const parameters = RECEIVE_TYPES.map((type, index) => `$${index + 1}::${type}`).join(', ');
    this.#statement = prepared(`SELECT * FROM ${schema}.receive(${parameters})`);
  }

  async receive(batch: readonly IncomingEvent[]): Promise<StoreReceipt[]> {
    const receipts: StoreReceipt[] = [];
    let events = batch.map(newEventOf);
    for (let round = 0; events.length > 0; round += 1) {
      if (round === MAX_ROUNDS) {
        throw new PostgresInboxError(
          'The PostgreSQL inbox could neither store an event nor find the stored event that it conflicts with.',
          null,
        );
      }
      const deliveries = deliveriesOf(events);
      const [row] = await this.source.query(this.#statement, valuesOf(events, deliveries));
      for (const [index, receipt] of receiptsOf(events, deliveries, row!))
        receipts[index] = receipt;
      events = events.filter(({ index }) => receipts[index] === undefined);
    }
    return receipts;
  }
}

/** An event that was not stored: its position from 1, the outcome, and the id of the stored event that it conflicts with. */
type NotStored = [position: number, outcome: StoreReceipt['outcome'], id: string | null];

/** An expectation that an event fulfilled: the position of the event from 1, and the fields of the expectation. */
type Fulfilled = [position: number, reference: string, transactionId: string | null, by: string];

/** The receipts of the events whose outcome is known, by their index in the batch. `row` is the result of `receive`. */
export function receiptsOf(
  events: readonly NewEvent[],
  deliveries: readonly NewDelivery[],
  row: ResultRow,
): Map<number, StoreReceipt> {
  const receipts: Map<number, StoreReceipt> = storedReceipts(events, deliveries, row);
  for (const [position, outcome, id] of JSON.parse(row['o_not_stored'] ?? '[]') as NotStored[]) {
    const { index, event } = events[position - 1]!;
    const knownId = id === null ? event.id : fromStored(id);
    receipts.set(index, { outcome, id: knownId, claimed: [], pending: false, fulfilled: [] });
  }
  for (const [position, reference, transactionId, by] of JSON.parse(
    row['o_fulfilled'] ?? '[]',
  ) as Fulfilled[]) {
    const { index } = events[position - 1]!;
    const receipt = receipts.get(index)!;
    const one = {
      reference: fromStored(reference),
      transactionId: transactionId && fromStored(transactionId),
      by: by as EventSource,
    };
    receipts.set(index, { ...receipt, fulfilled: [...receipt.fulfilled, one] });
  }
  return receipts;
}

/** The receipts of the events that were stored, by their index in the batch. */
function storedReceipts(
  events: readonly NewEvent[],
  deliveries: readonly NewDelivery[],
  row: ResultRow,
): Map<number, StoreReceipt> {
  const seqs = elementsOf(row['o_seqs']);
  const runs = elementsOf(row['o_runs']);
  const receivedAt = toDate(row['o_received_ms']!);
  const receipts = new Map<
    number,
    StoreReceipt & { claimed: ClaimedDelivery[]; pending: boolean }
  >();
  for (const [eventIndex, { index, event }] of events.entries()) {
    if (seqs[eventIndex] === 'NULL') continue;
    receipts.set(index, {
      outcome: 'stored',
      id: event.id,
      claimed: [],
      pending: false,
      fulfilled: [],
    });
  }
  for (const [deliveryIndex, { eventIndex, handler }] of deliveries.entries()) {
    const { index, event } = events[eventIndex]!;
    const receipt = receipts.get(index);
    if (receipt === undefined) continue;
    if (runs[deliveryIndex] !== 't') {
      receipt.pending = true;
      continue;
    }
    receipt.claimed.push({
      company: event.company,
      id: event.id,
      handler,
      token: 1,
      seq: Number(seqs[eventIndex]),
      attempt: 1,
      receivedAt,
      ageMs: 0,
      raw: event.raw,
      source: event.source,
      crashes: 0,
    });
  }
  return receipts;
}

/** The last statement of `receive`, after all others that lock rows: see `expectations.ts`. */
const fulfil = (schema: string): string => `IF p_fulfils <> '{}' THEN
      o_fulfilled := ${schema}.fulfil(o_seqs, p_companies, p_ids, p_once, p_types, p_keys, p_orderings,
        p_references, p_fulfils, p_digests);
    END IF;`;

/**
 * The function `receive` stores the events that are new. It returns one row: the number of each event that it stored,
 * whether each delivery runs under its worker, and the outcomes of the events that it did not store. It has several small statements, because PostgreSQL takes longer to set up one join of all
 * these arrays than to run it.
 *
 * Events are numbered in the order of the batch, which is the order of lists and claims. They are inserted in an order that
 * is the same for all processes, so that two processes with the same events or transactions do not deadlock.
 */
export const receiveFunction = (schema: string, catalogLock: string): string => `
CREATE FUNCTION ${schema}.receive(${RECEIVE_PARAMETERS})
RETURNS TABLE (${RECEIPT_COLUMNS})
LANGUAGE plpgsql VOLATILE ${BY_INDEX}
AS $receive$
DECLARE
  v_now CONSTANT bigint := ${NOW_MS};
  v_version bigint;
  v_paused text[];
  -- For each delivery: whether this transaction has the lock of its key, so that it may be stored as running.
  v_free boolean[];
  -- For each delivery: whether it waits for its turn.
  v_waiting boolean[];
  v_stored bigint[];
  v_repeat record;
BEGIN
  -- Events must be durable before the 2xx response, even if the role or the database does not wait for the disk.
  IF current_setting('synchronous_commit') = 'off' THEN
    PERFORM set_config('synchronous_commit', 'on', true);
  END IF;
  -- A change of the catalog waits for this transaction, so no event is stored with an outdated version after it.
  PERFORM pg_advisory_xact_lock_shared(${catalogLock});
  SELECT m.catalog_version, ARRAY(SELECT p.handler FROM ${schema}.pause p) INTO v_version, v_paused
    FROM ${schema}.meta m;

  IF array_remove(d_workers, NULL) <> '{}' AND '*' <> ALL (v_paused) THEN
    SELECT array_agg(CASE WHEN d.worker IS NULL OR d.handler = ANY (v_paused) THEN false
                          WHEN d.ordering IS NULL THEN true
                          ELSE pg_try_advisory_xact_lock(${keyLock('d.ordering', 'd.handler')}) END)
      INTO v_free FROM unnest(d_workers, d_handlers, d_orderings) AS d (worker, handler, ordering);
    -- A new statement after the locks: rule 2 in ordering.ts.
    SELECT array_agg(c.action = 'run'), array_agg(c.action = 'wait') INTO o_runs, v_waiting
      FROM (
        SELECT CASE
                 WHEN NOT d.free THEN 'claim'
                 WHEN d.ordering IS NULL THEN 'run'
                 WHEN ${isRunning(schema, 'd.ordering', 'd.handler')} THEN 'wait'
                 WHEN EXISTS (SELECT FROM ${schema}.delivery w
                               WHERE w.waiting AND w.handler = d.handler AND w.ordering = d.ordering ${LOOKED_UP}) THEN 'claim'
                 WHEN EXISTS (SELECT FROM ${schema}.delivery w
                               WHERE w.ordering = d.ordering AND w.handler = d.handler AND w.due_at <= v_now
                                 AND w.state = 'pending' AND NOT w.waiting AND w.ordering IS NOT NULL ${LOOKED_UP}) THEN 'claim'
                 ELSE 'run' END AS action
          FROM unnest(v_free, d_handlers, d_orderings) AS d (free, handler, ordering)
        -- Keeps the planner from merging the subqueries, so that each action is computed once.
        OFFSET 0
      ) c;
  END IF;

  SELECT array_agg(CASE WHEN i.first AND i.version = v_version THEN nextval('${schema}.event_seq_seq') END)
    INTO o_seqs FROM unnest(p_first, p_versions) AS i (first, version);
  WITH stored AS (
    INSERT INTO ${schema}.event (seq, company, id, once, event_type, source, occurred_at, received_at, ordering_key,
                                 ordering, digest, raw, headers, stale, unhandled, reference, amount, currency)
    SELECT i.seq, i.company, i.id, i.once, i.event_type, COALESCE(i.source, 'webhook'), i.occurred_ms, v_now,
           i.ordering_key, i.ordering, i.digest, i.raw, i.headers, i.stale, i.unhandled, i.reference, i.amount, i.currency
      FROM unnest(o_seqs, p_companies, p_ids, p_once, p_types, p_occurred_ms, p_keys, p_orderings, p_digests, p_raws,
                  p_headers, p_stale, p_unhandled, p_sources, s_references, s_amounts, s_currencies)
        AS i (seq, company, id, once, event_type, occurred_ms, ordering_key, ordering, digest, raw, headers, stale,
              unhandled, source, reference, amount, currency)
     WHERE i.seq IS NOT NULL
     ORDER BY CASE WHEN i.once THEN i.ordering END, CASE WHEN i.once THEN i.event_type END, i.company, i.id
    ON CONFLICT DO NOTHING
    RETURNING seq
  )
  SELECT array_agg(s.seq) INTO v_stored FROM stored s;
  IF cardinality(v_stored) IS DISTINCT FROM cardinality(p_ids) THEN
    SELECT array_agg(CASE WHEN i.seq = ANY (v_stored) THEN i.seq END) INTO o_seqs FROM unnest(o_seqs) AS i (seq);
  END IF;

  INSERT INTO ${schema}.delivery (event, handler, ordering, state, waiting, due_at, worker, token, attempts, started_at)
  SELECT d.seq, d.handler, d.ordering,
         CASE WHEN d.run THEN 'running' ELSE 'pending' END, d.waiting, CASE WHEN NOT d.run THEN v_now END,
         CASE WHEN d.run THEN d.worker END, d.run::integer, d.run::integer, CASE WHEN d.run THEN v_now END
    FROM (
      SELECT o_seqs[n.position] AS seq, n.handler, n.worker, n.ordering,
             COALESCE(n.run, false) AS run, COALESCE(n.waiting, false) AS waiting
        FROM unnest(d_positions, d_handlers, d_workers, d_orderings, o_runs, v_waiting)
          AS n (position, handler, worker, ordering, run, waiting)
    ) d WHERE d.seq IS NOT NULL;

  o_received_ms := v_now;
  IF cardinality(v_stored) = cardinality(p_ids) THEN
    ${fulfil(schema)}
    RETURN NEXT;
    RETURN;
  END IF;

  -- For each event that was not stored: the stored event with its id, or else the one of its transaction.
  SELECT json_agg(json_build_array(i.position, CASE WHEN k.id IS NULL THEN 'outdated'
                                               WHEN k.id = i.id AND k.digest <> i.digest THEN 'conflict'
                                               ELSE 'duplicate' END, k.id)) INTO o_not_stored
    FROM unnest(o_seqs, p_companies, p_ids, p_once, p_types, p_keys, p_orderings, p_digests, p_versions, p_stale)
      WITH ORDINALITY AS i (seq, company, id, once, event_type, ordering_key, ordering, digest, version, stale, position)
    LEFT JOIN LATERAL (
      SELECT x.id, x.digest FROM (
        SELECT a.id, a.digest, 1 AS rank FROM ${schema}.event a WHERE a.company = i.company AND a.id = i.id
        UNION ALL
        SELECT b.id, b.digest, 2 FROM ${schema}.event b
         WHERE ${isOnceOf('b', 'i')} AND ${countsOnce('i')}
      ) x ORDER BY x.rank LIMIT 1
    ) k ON true
   WHERE i.seq IS NULL AND (k.id IS NOT NULL OR i.version <> v_version);

  -- Notes each duplicate by transaction that has another id, in the same order in all processes.
  FOR v_repeat IN
    SELECT e.seq, i.id
      FROM unnest(o_seqs, p_companies, p_ids, p_once, p_types, p_keys, p_orderings, p_stale)
        WITH ORDINALITY AS i (seq, company, id, once, event_type, ordering_key, ordering, stale, position)
      JOIN ${schema}.event e ON ${isOnceOf('e', 'i')}
     WHERE i.seq IS NULL AND ${countsOnce('i')} AND e.id <> i.id
       AND NOT EXISTS (SELECT FROM ${schema}.event own WHERE own.company = i.company AND own.id = i.id)
     ORDER BY e.seq, i.position
  LOOP
    UPDATE ${schema}.event e
       SET repeats = CASE WHEN jsonb_array_length(e.repeats) >= ${MAX_REPEATS} THEN e.repeats - 0
                     ELSE COALESCE(e.repeats, '[]') END
                     || jsonb_build_array(jsonb_build_array(v_repeat.id, v_now))
     WHERE e.seq = v_repeat.seq AND NOT EXISTS (
       SELECT FROM jsonb_array_elements(e.repeats) AS known (entry) WHERE known.entry ->> 0 = v_repeat.id);
  END LOOP;
  ${fulfil(schema)}
  RETURN NEXT;
END $receive$;
`;
