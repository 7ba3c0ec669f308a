import type { PollChange, PollSettlement } from '../../../inbox/store/inbox-store.js';
import {
  OPEN,
  recordStatement,
  recordValues,
  SqlExpectations,
  UNSCHEDULED,
} from '../../sql/expectations.js';
import type { PolledRow } from '../../sql/expectations.js';
import { countsOnce, toStored } from '../../sql/sql-connection.js';
import type { SqlConnection } from '../../sql/sql-connection.js';
import { namesIn, placeholdersFor } from '../connection/array-parameters.js';
import type { ConnectionSource, PreparedStatement } from '../connection/connection-source.js';
import { prepared } from '../connection/connection-source.js';
import type { PostgresSql } from './postgres-sql.js';
import type { WakeNotifier } from '../connection/wake-notifications.js';
import { firstValueOf } from './commit.js';
import { RECEIPT_COLUMNS, RECEIVE_PARAMETERS, ReceiveBatch } from './receive.js';
import { BY_INDEX, dialectOf, indexed, isOnceOf, LOOKED_UP, NOW_MS } from './postgres-sql.js';

/** The first parameters of the function `settle_poll`, which begin with the parameters of {@link recordStatement}. */
const SETTLE_PARAMETERS = `p_seq bigint, p_token bigint, p_result text, p_detail text, p_keep_lost boolean, p_next_ms bigint,
  p_overdue boolean, p_before text, p_stored text, p_type text, p_event_types text[]`;

/**
 * The expectations of a PostgreSQL inbox. A poll that may store an event is settled by one call of a database function.
 * If the store used several statements, a process that stopped between two of them would delay the receives of other
 * processes.
 */
export class PostgresExpectations extends SqlExpectations {
  readonly #settlePoll: PreparedStatement;

  constructor(
    sql: PostgresSql,
    private readonly source: ConnectionSource,
    schema: string,
    /** The interval at which each worker looks for polls that became due without a notification, in milliseconds. */
    private readonly pollMs: number,
    private readonly notifier: WakeNotifier,
  ) {
    super(sql);
    const placeholders = placeholdersFor(`${SETTLE_PARAMETERS}, ${RECEIVE_PARAMETERS}`);
    this.#settlePoll = prepared(`SELECT * FROM ${schema}.settle_poll(${placeholders})`);
  }

  protected override wake(dueInMs: number): void {
    if (dueInMs < this.pollMs) this.notifier.notify();
  }

  protected override inTransaction(tx: unknown): Pick<SqlConnection, 'dialect' | 'run'> {
    const { query } = (tx ?? {}) as { query?: unknown };
    if (typeof query !== 'function') {
      throw new TypeError(
        '"tx" of expect() must have a method query(text, values). Pass, for example, a client of "pg" or an ' +
          'EntityManager of TypeORM.',
      );
    }
    return {
      dialect: this.connection.dialect,
      // All drivers return the row of a SELECT in the same way, and all can pass values as texts.
      async run(sql, values = []) {
        const text = `WITH changed AS (${sql} RETURNING 1) SELECT count(*)::integer FROM changed`;
        const texts = values.map((value) => (value === null ? null : String(value)));
        return Number(firstValueOf((await query.call(tx, text, texts)) as readonly unknown[]));
      },
    };
  }

  protected override async apply(
    change: PollChange,
    settlement: PollSettlement,
    { state }: PolledRow,
  ) {
    const { outcome, event, eventTypes } = settlement;
    const batch = new ReceiveBatch(change.event === null ? [] : [change.event]);
    const [row] = await this.source.query(this.#settlePoll, [
      ...recordValues(change, settlement),
      state,
      change.storedId && toStored(change.storedId),
      outcome.result === 'event' ? toStored(event!.eventType) : null,
      eventTypes.map(toStored),
      ...batch.values,
    ]);
    return {
      state: (row!['o_state'] ?? undefined) as PolledRow['state'] | undefined,
      receipt: row!['o_received_ms'] == null ? null : (batch.receiptsOf(row!)[0] ?? null),
    };
  }
}

/** SQL: sets the columns of an expectation `x` that the event `e` fulfils. */
const FULFILLED_BY = `state = 'fulfilled', fulfilled_at = ${NOW_MS}, fulfilled_by = e.source, fulfilled_id = e.id,
           fulfilled_type = e.event_type, fulfilled_transaction = e.ordering_key, ${UNSCHEDULED}`;

/**
 * The function `fulfil` fulfils the expectations of received events. So that two transactions cannot deadlock, the
 * function runs after all other statements of `receive` that lock rows, and locks expectations in the order of their
 * numbers. `p_seqs` contains the number of each event that was just stored. An event without a number fulfils an
 * expectation only if it is a duplicate of a stored event. For each fulfilled expectation, the result contains the
 * position of the event and the fields of the expectation. `fulfil` inherits the settings of the functions that call
 * it; see BY_INDEX.
 */
export const expectationFunctions = (schema: string): string => `
CREATE OR REPLACE FUNCTION ${schema}.fulfil(p_seqs bigint[], p_companies text[], p_ids text[], p_once boolean[], p_types text[],
  p_keys text[], p_orderings uuid[], p_references text[], p_fulfils boolean[], p_digests bytea[]) RETURNS json
LANGUAGE plpgsql VOLATILE
AS $fulfil$
DECLARE
  -- Pairs of an expectation and an event with the same transaction or reference. An expectation or an event can be in
  -- several pairs.
  v_expected bigint[];
  v_received bigint[];
  v_positions bigint[];
  v_fulfilled json;
BEGIN
  SELECT array_agg(x.seq), array_agg(COALESCE(i.seq, k.seq)), array_agg(i.position)
    INTO v_expected, v_received, v_positions
    FROM unnest(p_seqs, p_companies, p_ids, p_once, p_types, p_keys, p_orderings, p_references, p_fulfils, p_digests)
      WITH ORDINALITY AS i (seq, company, id, once, event_type, ordering_key, ordering, reference, fulfils, digest, position)
   CROSS JOIN LATERAL (
     SELECT t.seq FROM ${schema}.expectation t WHERE t.transaction_id = i.ordering_key AND t.company = i.company
     UNION ALL
     SELECT r.seq FROM ${schema}.expectation r WHERE r.reference = i.reference AND r.company = i.company
   ) x
    LEFT JOIN LATERAL (
      SELECT y.seq, y.same FROM (
        SELECT a.seq, a.digest = i.digest AS same, 1 AS rank FROM ${schema}.event a
         WHERE a.company = i.company AND a.id = i.id
        UNION ALL
        SELECT b.seq, true, 2 FROM ${schema}.event b WHERE i.once AND ${isOnceOf('b', 'i')}
      ) y WHERE i.seq IS NULL ORDER BY y.rank LIMIT 1
    ) k ON k.same
   WHERE i.fulfils AND COALESCE(i.seq, k.seq) IS NOT NULL;
  IF v_expected IS NULL THEN RETURN NULL; END IF;
  PERFORM FROM ${schema}.expectation x WHERE x.seq = ANY (v_expected) AND x.${OPEN} ORDER BY x.seq FOR UPDATE;
  IF FOUND THEN
    WITH first AS MATERIALIZED (
      SELECT DISTINCT ON (o.seq) o.seq AS expected, f.event, f.position
        FROM unnest(v_expected, v_received, v_positions) AS f (expected, event, position)
        JOIN ${schema}.expectation o ON o.seq = f.expected
        JOIN ${schema}.event e ON e.seq = f.event
       WHERE o.${OPEN} AND (o.transaction_id IS NULL OR o.transaction_id IS NOT DISTINCT FROM e.ordering_key)
       ORDER BY o.seq, f.position
    ), fulfilled AS (
      UPDATE ${schema}.expectation x
         SET ${FULFILLED_BY}
        FROM first f JOIN ${schema}.event e ON e.seq = f.event
       WHERE x.seq = f.expected AND x.${OPEN}
      RETURNING f.position, x.reference, x.transaction_id, x.fulfilled_by
    )
    SELECT json_agg(json_build_array(f.position, f.reference, f.transaction_id, f.fulfilled_by)) INTO v_fulfilled
      FROM fulfilled f;
  END IF;
  -- An expectation with the same reference but another transaction only stores the id of the last such event, unless
  -- the expectation is locked.
  WITH free AS MATERIALIZED (
    SELECT x.seq, COALESCE(x.transaction_id, x.fulfilled_transaction) AS own FROM ${schema}.expectation x
     WHERE x.seq = ANY (v_expected) AND x.state <> 'cancelled' ORDER BY x.seq FOR UPDATE SKIP LOCKED
  ), last AS MATERIALIZED (
    SELECT DISTINCT ON (n.seq) n.seq, e.id
      FROM free n JOIN unnest(v_expected, v_received, v_positions) AS f (expected, event, position) ON f.expected = n.seq
      JOIN ${schema}.event e ON e.seq = f.event
     WHERE n.own <> COALESCE(e.ordering_key, '') ORDER BY n.seq, f.position DESC
  )
  UPDATE ${schema}.expectation x SET other_event_id = l.id FROM last l WHERE x.seq = l.seq;
  RETURN v_fulfilled;
END $fulfil$;

-- Applies a PollChange that was decided when the expectation had the state p_before. The function stores the event
-- before it locks the expectation, because receive locks rows in this order too. After the function has the lock, it
-- checks whether the decision is still right, and undoes the receipt if not. p_type is the type of a found event.
CREATE OR REPLACE FUNCTION ${schema}.settle_poll(${SETTLE_PARAMETERS}, ${RECEIVE_PARAMETERS})
RETURNS TABLE (o_state text, ${RECEIPT_COLUMNS})
LANGUAGE plpgsql VOLATILE ${BY_INDEX}
AS $settle$
DECLARE
  v ${schema}.expectation;
  v_fulfil text := p_stored;
BEGIN
  BEGIN
    IF p_company <> '{}' THEN
      SELECT r.o_received_ms, r.o_seqs, r.o_runs, r.o_not_stored, r.o_fulfilled
        INTO o_received_ms, o_seqs, o_runs, o_not_stored, o_fulfilled
        FROM ${schema}.receive(${namesIn(RECEIVE_PARAMETERS)}) r;
      IF o_not_stored -> 0 ->> 1 = 'outdated' THEN RETURN NEXT; RETURN; END IF;
      IF p_type IS NOT NULL THEN v_fulfil := COALESCE(o_not_stored -> 0 ->> 2, p_id[1]); END IF;
    END IF;
    SELECT * INTO v FROM ${schema}.expectation x WHERE x.seq = p_seq AND x.token = p_token AND x.leased FOR UPDATE;
    IF NOT FOUND OR (v.state <> p_before AND (v.state <> 'fulfilled' OR o_fulfilled IS NULL))
      -- A new event is stored, or the expectation becomes overdue, only if the transaction has no event of another type.
      OR (CASE WHEN p_type IS NULL THEN p_stored IS NULL AND v.state = 'waiting' ELSE o_seqs[1] IS NOT NULL END AND EXISTS (
        SELECT FROM ${schema}.event e
         WHERE ${indexed('e.ordering_key')} = ${indexed('v.transaction_id')} AND ${countsOnce('e.')}
           AND e.ordering_key = v.transaction_id AND e.company = v.company AND e.event_type = ANY (p_event_types)
           AND e.event_type IS DISTINCT FROM p_type ${LOOKED_UP}))
    THEN RAISE EXCEPTION USING ERRCODE = 'PYUND'; END IF;
    UPDATE ${schema}.expectation x
       SET ${FULFILLED_BY}
      FROM ${schema}.event e WHERE x.seq = p_seq AND x.${OPEN} AND e.company = v.company AND e.id = v_fulfil;
    ${recordStatement(dialectOf(schema))} INTO o_state;
  EXCEPTION WHEN SQLSTATE 'PYUND' THEN
    o_received_ms := NULL;
  END;
  RETURN NEXT;
END $settle$;
`;
