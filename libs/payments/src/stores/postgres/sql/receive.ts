import { hash } from 'node:crypto';
import { TEST_EVENT_TYPE } from '../../../events/payment-event.js';
import type {
  ClaimedDelivery,
  EventSource,
  FulfilledExpectation,
  IncomingEvent,
  StoreReceipt,
} from '../../../inbox/store/inbox-store.js';
import { MAX_REPEATS } from '../../../inbox/store/stored-event.js';
import {
  arraysOf,
  declarationOf,
  elementsOf,
  placeholdersFor,
} from '../connection/array-parameters.js';
import type { Columns } from '../connection/array-parameters.js';
import type { ConnectionSource, Parameter, ResultRow } from '../connection/connection-source.js';
import { PostgresInboxError, prepared } from '../connection/connection-source.js';
import { isRunning, keyLock } from './ordering.js';
import { countsOnce, fromStored, orderingOf, toStored } from '../../sql/sql-connection.js';
import { BY_INDEX, isOnceOf, LOOKED_UP, NEEDS_READ_COMMITTED, NOW_MS } from './postgres-sql.js';

/**
 * The maximum number of times that the function `receive` runs for one batch. Two rounds are enough, unless tombstones
 * are pruned between the rounds, or other processes store copies of the same events between them.
 */
const MAX_ROUNDS = 5;

/** An event to store, with its hashes. */
interface NewEvent {
  readonly event: IncomingEvent;
  /** Whether the type of the event is handled once per transaction, and the event has a transaction. */
  readonly once: boolean;
  /** The hash of the company and the ordering key, as a UUID; `null` if the event has no ordering key. */
  readonly ordering: string | null;
  readonly digest: Buffer;
  /**
   * Whether the event is the first in the statement with its id and, if its type is handled once, with its transaction
   * and type.
   */
  readonly first: boolean;
}

interface NewDelivery {
  /** The index of the event in the batch. */
  readonly index: number;
  readonly handler: string;
  readonly ordering: string | null;
  /** The id of the worker that may run the delivery immediately; `null` if no worker may. */
  readonly worker: string | null;
}

/** The columns of the table `event` that `receive` writes. */
const EVENT_COLUMNS: Columns<NewEvent> = {
  company: ['text', ({ event }) => event.company],
  id: ['text', ({ event }) => toStored(event.id)],
  once: ['boolean', ({ once }) => String(once)],
  event_type: ['text', ({ event }) => toStored(event.eventType)],
  source: ['text', ({ event }) => event.source],
  occurred_at: ['bigint', ({ event }) => event.occurredAt.getTime()],
  ordering_key: ['text', ({ event }) => event.orderingKey && toStored(event.orderingKey)],
  ordering: ['uuid', ({ ordering }) => ordering],
  digest: ['bytea', ({ digest }) => digest],
  raw: ['bytea', ({ event }) => event.raw],
  headers: ['text', ({ event }) => headersOf(event)],
  stale: ['boolean', ({ event }) => String(event.stale)],
  unhandled: ['boolean', ({ event }) => String(isUnhandled(event))],
  reference: [
    'text',
    ({ event: { summary } }) => summary?.reference && toStored(summary.reference),
  ],
  amount: ['text', ({ event: { summary } }) => summary?.amount && toStored(summary.amount)],
  currency: ['text', ({ event: { summary } }) => summary?.currency && toStored(summary.currency)],
};

/**
 * The parameters of `receive` for each event. In addition to the columns, the parameters contain the catalog version,
 * whether the event can fulfil expectations, and the reference of these expectations.
 */
const EVENT_PARAMETERS: Columns<NewEvent> = {
  ...EVENT_COLUMNS,
  // Only the first event of an id, or of a transaction and type, is inserted, because the outcome of the other events
  // depends on the first event.
  first: ['boolean', ({ first }) => String(first)],
  version: ['bigint', ({ event }) => event.catalogVersion],
  fulfils: ['boolean', ({ event }) => (event.fulfils ? 'true' : null)],
  expected: [
    'text',
    ({ event }) => (event.fulfils ? event.reference && toStored(event.reference) : null),
  ],
};

const DELIVERY_PARAMETERS: Columns<NewDelivery> = {
  // PostgreSQL counts the elements of an array from 1.
  position: ['bigint', ({ index }) => index + 1],
  handler: ['text', ({ handler }) => toStored(handler)],
  worker: ['uuid', ({ worker }) => worker],
  ordering: ['uuid', ({ ordering }) => ordering],
};

/** The columns of the table `event` that `receive` fills, apart from the number and the time of receipt. */
const STORED = Object.keys(EVENT_COLUMNS);

export const RECEIVE_PARAMETERS = `${declarationOf(EVENT_PARAMETERS, 'p_')}, ${declarationOf(DELIVERY_PARAMETERS, 'd_')}`;

/** The columns of the result of the function `receive`, which {@link ReceiveBatch.receiptsOf} reads. */
export const RECEIPT_COLUMNS =
  'o_received_ms bigint, o_seqs bigint[], o_runs boolean[], o_not_stored jsonb, o_fulfilled json';

/** The returned function stores the events of any number of webhook requests in one statement. */
export function receiver(
  source: ConnectionSource,
  schema: string,
): (events: readonly IncomingEvent[]) => Promise<StoreReceipt[]> {
  const statement = prepared(
    `SELECT * FROM ${schema}.receive(${placeholdersFor(RECEIVE_PARAMETERS)})`,
  );
  return async (events) => {
    const receipts: (StoreReceipt | undefined)[] = events.map(() => undefined);
    for (let round = 0; round < MAX_ROUNDS; round += 1) {
      const open = [...receipts.keys()].filter((index) => receipts[index] === undefined);
      if (open.length === 0) return receipts as StoreReceipt[];
      const batch = new ReceiveBatch(open.map((index) => events[index]!));
      const [row] = await source.query(statement, batch.values);
      for (const [position, receipt] of batch.receiptsOf(row!).entries())
        receipts[open[position]!] = receipt;
    }
    throw new PostgresInboxError(
      'The PostgreSQL inbox could neither store an event nor find the stored event that conflicts with it. ' +
        'Send the event again.',
      null,
    );
  };
}

/**
 * An event that was not stored. `position` is the position of the event in the batch, from 1. `id` is the id of the
 * stored event of which this event is a copy; `null` if there is no such event.
 */
type NotStored = [position: number, outcome: StoreReceipt['outcome'], id: string | null];

/** An expectation that an event fulfilled. `position` is the position of the event in the batch, from 1. */
type Fulfilled = [position: number, reference: string, transactionId: string | null, by: string];

/** The events of one call of the function `receive`. */
export class ReceiveBatch {
  readonly #events: readonly NewEvent[];
  readonly #deliveries: readonly NewDelivery[];

  constructor(events: readonly IncomingEvent[]) {
    const known = new Set<string>();
    this.#events = events.map((event) => newEventOf(event, known));
    this.#deliveries = deliveriesOf(this.#events);
  }

  get values(): Parameter[] {
    return [
      ...arraysOf(EVENT_PARAMETERS, this.#events),
      ...arraysOf(DELIVERY_PARAMETERS, this.#deliveries),
    ];
  }

  /** Returns the receipts in the order of the events; `undefined` if the outcome is not known yet. */
  receiptsOf(row: ResultRow): (StoreReceipt | undefined)[] {
    const receipts = this.#storedReceipts(row);
    for (const [position, outcome, id] of JSON.parse(row['o_not_stored'] ?? '[]') as NotStored[]) {
      const knownId = id === null ? this.#events[position - 1]!.event.id : fromStored(id);
      receipts[position - 1] = receiptOf(outcome, knownId);
    }
    for (const [position, reference, transactionId, by] of JSON.parse(
      row['o_fulfilled'] ?? '[]',
    ) as Fulfilled[]) {
      receipts[position - 1]!.fulfilled.push({
        reference: fromStored(reference),
        transactionId: transactionId && fromStored(transactionId),
        by: by as EventSource,
      });
    }
    return receipts;
  }

  #storedReceipts(row: ResultRow): (Receipt | undefined)[] {
    const seqs = elementsOf(row['o_seqs']);
    const runs = elementsOf(row['o_runs']);
    const receivedAt = new Date(Number(row['o_received_ms']!));
    const receipts = this.#events.map(({ event }, index) =>
      seqs[index] === 'NULL' ? undefined : receiptOf('stored', event.id),
    );
    for (const [deliveryIndex, { index, handler }] of this.#deliveries.entries()) {
      const receipt = receipts[index];
      if (receipt === undefined) continue;
      if (runs[deliveryIndex] !== 't') {
        receipt.pending = true;
        continue;
      }
      const { company, id, source } = this.#events[index]!.event;
      receipt.claimed.push({
        company,
        id,
        handler,
        token: receivedAt.getTime(),
        seq: Number(seqs[index]),
        attempt: 1,
        receivedAt,
        ageMs: 0,
        source,
        crashes: 0,
      });
    }
    return receipts;
  }
}

interface Receipt extends StoreReceipt {
  readonly claimed: Omit<ClaimedDelivery, 'raw'>[];
  readonly fulfilled: FulfilledExpectation[];
  pending: boolean;
}

function receiptOf(outcome: StoreReceipt['outcome'], id: string): Receipt {
  return { outcome, id, claimed: [], pending: false, fulfilled: [] };
}

/** @param known the ids, and the transactions and types, of the earlier events in the statement */
function newEventOf(event: IncomingEvent, known: Set<string>): NewEvent {
  const { company, id, eventType, orderingKey, stale } = event;
  const hashed = orderingOf(company, orderingKey && toStored(orderingKey));
  const ordering = hashed && hashed.toString('hex');
  const once = event.oncePerTransaction && ordering !== null;
  const keys = [`id ${company} ${id}`];
  if (once && !stale) keys.push(`once ${ordering} ${eventType}`);
  const first = !keys.some((key) => known.has(key));
  if (first) for (const key of keys) known.add(key);
  return { event, once, ordering, digest: hash('sha256', event.raw, 'buffer'), first };
}

/** Of the deliveries with the same ordering key and handler, only the first may run immediately. */
function deliveriesOf(events: readonly NewEvent[]): NewDelivery[] {
  const busy = new Set<string>();
  return events.flatMap(({ event: { handlers, assign }, ordering }, index) =>
    [...new Set(handlers)].map((handler) => {
      let worker = assign?.handlers.includes(handler) ? assign.workerId : null;
      if (ordering !== null) {
        const key = `${ordering} ${handler}`;
        if (busy.has(key)) worker = null;
        busy.add(key);
      }
      return { index, handler, ordering, worker };
    }),
  );
}

/** Whether the event has no handler although its type needs a handler. A stale event can be unhandled too. */
function isUnhandled({ eventType, handlers }: IncomingEvent): boolean {
  return handlers.length === 0 && eventType !== TEST_EVENT_TYPE;
}

function headersOf({ headers }: IncomingEvent): string | null {
  return Object.keys(headers).length === 0 ? null : toStored(JSON.stringify(headers));
}

/** SQL: the events with their numbers, as rows `i` with these columns and their `position`. */
const eventRows = (...columns: string[]): string =>
  `unnest(o_seqs, ${columns.map((name) => `p_${name}`).join(', ')})
        WITH ORDINALITY AS i (seq, ${columns.join(', ')}, position)`;

/**
 * The function `receive` stores the events that are new. The function returns one row: the number of each stored event,
 * whether each delivery was leased to its worker, and the outcomes of the events that were not stored. The function has
 * several small statements instead of one join of all these arrays, because PostgreSQL would take longer to set up that
 * join than to run it.
 *
 * Events are numbered in the order of the batch, which is the order of lists and claims. Events are inserted in an
 * order that is the same for all processes, so that two processes with the same events or transactions do not deadlock.
 */
export const receiveFunction = (schema: string, catalogLock: string): string => `
CREATE OR REPLACE FUNCTION ${schema}.receive(${RECEIVE_PARAMETERS})
RETURNS TABLE (${RECEIPT_COLUMNS})
LANGUAGE plpgsql VOLATILE ${BY_INDEX}
AS $receive$
DECLARE
  v_now CONSTANT bigint := ${NOW_MS};
  v_version bigint;
  v_paused text[];
  -- For each delivery: whether this transaction has the lock of its key, so that the delivery may be stored as running.
  v_free boolean[];
  -- For each delivery: whether it waits for its turn.
  v_waiting boolean[];
  v_stored bigint[];
  -- Whether all events were stored.
  v_all boolean;
  v_known record;
BEGIN
  ${NEEDS_READ_COMMITTED}
  -- Events must be durable before the 2xx response, even if the settings of the role or the database turn the wait for
  -- the disk off.
  IF current_setting('synchronous_commit') = 'off' THEN
    PERFORM set_config('synchronous_commit', 'on', true);
  END IF;
  -- A change of the catalog waits for this transaction, so no event is stored with an outdated version after the
  -- change.
  PERFORM pg_advisory_xact_lock_shared(${catalogLock});
  SELECT m.catalog_version, ARRAY(SELECT p.handler FROM ${schema}.pause p) INTO v_version, v_paused
    FROM ${schema}.meta m;

  IF d_worker <> '{}' AND '*' <> ALL (v_paused) THEN
    SELECT array_agg(CASE WHEN d.worker IS NULL OR d.handler = ANY (v_paused) THEN false
                          WHEN d.ordering IS NULL THEN true
                          ELSE pg_try_advisory_xact_lock(${keyLock('d.ordering', 'd.handler')}) END)
      INTO v_free FROM unnest(d_worker, d_handler, d_ordering) AS d (worker, handler, ordering);
    -- This must be a new statement after the locks; see rule 2 in ordering.ts.
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
          FROM unnest(v_free, d_handler, d_ordering) AS d (free, handler, ordering)
        -- Keeps the planner from merging the subqueries, so that each action is computed once.
        OFFSET 0
      ) c;
  END IF;

  SELECT array_agg(CASE WHEN i.first AND i.version = v_version THEN nextval('${schema}.event_seq_seq') END)
    INTO o_seqs FROM unnest(p_first, p_version) AS i (first, version);
  WITH stored AS (
    INSERT INTO ${schema}.event (seq, received_at, ${STORED.join(', ')})
    SELECT i.seq, v_now, ${STORED.map((name) => `i.${name}`).join(', ')}
      FROM ${eventRows(...STORED)}
     WHERE i.seq IS NOT NULL
     ORDER BY CASE WHEN i.once THEN i.ordering END, CASE WHEN i.once THEN i.event_type END, i.company, i.id
    ON CONFLICT DO NOTHING
    RETURNING seq
  )
  SELECT array_agg(s.seq) INTO v_stored FROM stored s;
  v_all := cardinality(v_stored) = cardinality(p_id);
  IF v_all IS NOT TRUE THEN
    SELECT array_agg(CASE WHEN i.seq = ANY (v_stored) THEN i.seq END) INTO o_seqs FROM unnest(o_seqs) AS i (seq);
  END IF;

  INSERT INTO ${schema}.delivery (event, handler, ordering, state, waiting, due_at, worker, token, attempts, started_at)
  SELECT d.seq, d.handler, d.ordering,
         CASE WHEN d.run THEN 'running' ELSE 'pending' END, d.waiting, CASE WHEN NOT d.run THEN v_now END,
         CASE WHEN d.run THEN d.worker END, CASE WHEN d.run THEN v_now ELSE 0 END, d.run::integer, CASE WHEN d.run THEN v_now END
    FROM (
      SELECT o_seqs[n.position] AS seq, n.handler, n.worker, n.ordering,
             COALESCE(n.run, false) AS run, COALESCE(n.waiting, false) AS waiting
        FROM unnest(d_position, d_handler, d_worker, d_ordering, o_runs, v_waiting)
          AS n (position, handler, worker, ordering, run, waiting)
    ) d WHERE d.seq IS NOT NULL;

  o_received_ms := v_now;
  IF v_all IS NOT TRUE THEN
    -- Finds, for each event that was not stored, the stored event with its id or, if there is none, the stored event of
    -- its transaction. In the second case, the stored event records the other id. The stored events are updated in an
    -- order that is the same for all processes.
    FOR v_known IN
      SELECT i.position, i.id <> k.id AS is_repeat, i.id AS own_id, k.seq, k.id,
             CASE WHEN k.id IS NULL THEN 'outdated'
                  WHEN k.id = i.id AND k.digest <> i.digest THEN 'conflict'
                  ELSE 'duplicate' END AS outcome
        FROM ${eventRows('company', 'id', 'once', 'event_type', 'ordering_key', 'ordering', 'digest', 'version', 'stale')}
        LEFT JOIN LATERAL (
          SELECT x.seq, x.id, x.digest FROM (
            SELECT a.seq, a.id, a.digest, 1 AS rank FROM ${schema}.event a WHERE a.company = i.company AND a.id = i.id
            UNION ALL
            SELECT b.seq, b.id, b.digest, 2 FROM ${schema}.event b
             WHERE ${isOnceOf('b', 'i')} AND ${countsOnce('i.')}
          ) x ORDER BY x.rank LIMIT 1
        ) k ON true
       WHERE i.seq IS NULL AND (k.id IS NOT NULL OR i.version <> v_version)
       ORDER BY k.seq, i.position
    LOOP
      o_not_stored := COALESCE(o_not_stored, '[]')
        || jsonb_build_array(jsonb_build_array(v_known.position, v_known.outcome, v_known.id));
      CONTINUE WHEN v_known.is_repeat IS NOT TRUE;
      UPDATE ${schema}.event e
         SET repeats = CASE WHEN jsonb_array_length(e.repeats) >= ${MAX_REPEATS} THEN e.repeats - 0
                       ELSE COALESCE(e.repeats, '[]') END
                       || jsonb_build_array(jsonb_build_array(v_known.own_id, v_now))
       WHERE e.seq = v_known.seq AND NOT EXISTS (
         SELECT FROM jsonb_array_elements(e.repeats) AS known (entry) WHERE known.entry ->> 0 = v_known.own_id);
    END LOOP;
  END IF;

  -- This call comes after all other statements that lock rows; see expectations.ts.
  IF p_fulfils <> '{}' THEN
    o_fulfilled := ${schema}.fulfil(o_seqs, p_company, p_id, p_once, p_event_type, p_ordering_key, p_ordering,
      p_expected, p_fulfils, p_digest);
  END IF;
  RETURN NEXT;
END $receive$;
`;
