import { contradictionDetail, nextDelayMs } from '../../../inbox/store/expectation-store.js';
import type { PollResult, PollSettlement, SettledPoll } from '../../../inbox/store/inbox-store.js';
import { boundedError } from '../../../inbox/store/stored-event.js';
import { OPEN, SqlExpectations, toDelay, UNSCHEDULED } from '../../sql/expectations.js';
import type { SqlConnection } from '../../sql/sql-connection.js';
import { namesIn, placeholdersFor } from '../connection/array-parameters.js';
import type { ConnectionSource, PreparedStatement } from '../connection/connection-source.js';
import { prepared } from '../connection/connection-source.js';
import type { PostgresSql } from './postgres-sql.js';
import type { WakeNotifier } from '../connection/wake-notifications.js';
import { firstValueOf } from './commit.js';
import { RECEIPT_COLUMNS, RECEIVE_PARAMETERS, ReceiveBatch } from './receive.js';
import { countsOnce, fromStored, toStored } from '../../sql/sql-connection.js';
import { BY_INDEX, indexed, isOnceOf, NOW_MS } from './postgres-sql.js';

const SETTLE_PARAMETERS = `p_seq bigint, p_token bigint, p_result text, p_detail text, p_next_ms bigint, p_overdue boolean,
  p_keep_lost boolean, p_event_types text[], p_contradiction text`;

/**
 * The expectations of a PostgreSQL inbox. A poll that may store an event is settled by one call of a database function.
 * With several statements, a process that stopped between two of them would delay the receives of other processes.
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

  protected override async settleWithEvents({
    lease,
    outcome,
    event,
    eventTypes,
    keepLost,
  }: PollSettlement): Promise<SettledPoll> {
    const { result, detail, next } = outcome;
    const delay = nextDelayMs(outcome);
    const batch = new ReceiveBatch(event === null ? [] : [event]);
    const [found] = await this.source.query(this.#settlePoll, [
      lease.seq,
      lease.token,
      result,
      detail === null ? null : toStored(boundedError(detail)),
      delay === null ? null : toDelay(delay),
      String(next === 'overdue'),
      String(keepLost),
      eventTypes.map(toStored),
      // The function replaces the placeholders {id} and {type}.
      event && toStored(contradictionDetail(event.eventType, { id: '{id}', eventType: '{type}' })),
      ...batch.values,
    ]);
    const row = found!;
    const isReceived = row['o_received_ms'] != null;
    const nextMs = row['o_next_ms'];
    return {
      settled: row['o_settled'] === 't',
      result: row['o_result'] as PollResult,
      detail: row['o_detail'] == null ? null : fromStored(row['o_detail']),
      state: row['o_state'] as SettledPoll['state'],
      changed: row['o_changed'] === 't',
      nextPollInMs: nextMs == null ? null : Number(nextMs),
      receipt: isReceived ? (batch.receiptsOf(row)[0] ?? null) : null,
    };
  }
}

/** SQL: sets the columns of an expectation `x` that the event `e` fulfils. */
const FULFILLED_BY = `state = 'fulfilled', fulfilled_at = ${NOW_MS}, fulfilled_by = e.source, fulfilled_id = e.id,
           fulfilled_type = e.event_type, fulfilled_transaction = e.ordering_key, ${UNSCHEDULED}`;

/**
 * The function `fulfil` fulfils the expectations of received events. The function runs after all other statements of
 * `receive` that lock rows, and locks expectations in the order of their numbers, so that no two transactions can
 * deadlock. `p_seqs` contains the number of each event that was just stored. An event without a number fulfils an
 * expectation only if it is a duplicate of a stored event. For each fulfilled expectation, the result contains the
 * position of the event and the fields of the expectation. The function inherits the settings of the functions that
 * call it; see BY_INDEX.
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

-- Returns the first stored event of a transaction that has one of these types, except the type p_except. The event must
-- count as the only event of its type.
CREATE OR REPLACE FUNCTION ${schema}.stored_event(p_company text, p_transaction text, p_types text[], p_except text,
  OUT o_id text, OUT o_type text)
LANGUAGE plpgsql STABLE ${BY_INDEX}
AS $stored$
BEGIN
  SELECT e.id, e.event_type INTO o_id, o_type FROM ${schema}.event e
   WHERE ${indexed('e.ordering_key')} = ${indexed('p_transaction')} AND ${countsOnce('e.')}
     AND e.ordering_key = p_transaction AND e.company = p_company AND e.event_type = ANY (p_types)
     AND e.event_type IS DISTINCT FROM p_except
   ORDER BY e.seq LIMIT 1;
END $stored$;

-- Settles a poll. The function stores the event before it locks the expectation, because receive locks rows in this
-- order too. After the function has the lock, it checks whether the event may be stored, and undoes the receipt if not.
CREATE OR REPLACE FUNCTION ${schema}.settle_poll(${SETTLE_PARAMETERS}, ${RECEIVE_PARAMETERS})
RETURNS TABLE (o_settled boolean, o_result text, o_detail text, o_state text, o_changed boolean, o_next_ms bigint,
  ${RECEIPT_COLUMNS})
LANGUAGE plpgsql VOLATILE ${BY_INDEX}
AS $settle$
DECLARE
  v ${schema}.expectation;
  v_stored record;
  -- The type of a found event; NULL for the event of an overdue payment.
  v_type text := CASE WHEN p_result = 'event' THEN p_event_type[1] END;
  -- Whether the event is received: a found event, or the event of an overdue payment.
  v_receive boolean := cardinality(p_company) > 0 AND (p_result = 'event' OR p_overdue);
  v_before text;
  v_fulfil text;
BEGIN
  o_settled := false; o_result := p_result; o_detail := p_detail; o_state := 'waiting'; o_changed := false;
  SELECT x.state INTO v_before FROM ${schema}.expectation x WHERE x.seq = p_seq AND x.token = p_token AND x.leased;
  IF NOT FOUND THEN RETURN NEXT; RETURN; END IF;
  IF v_receive THEN
    BEGIN
      SELECT r.o_received_ms, r.o_seqs, r.o_runs, r.o_not_stored, r.o_fulfilled
        INTO o_received_ms, o_seqs, o_runs, o_not_stored, o_fulfilled
        FROM ${schema}.receive(${namesIn(RECEIVE_PARAMETERS)}) r;
      IF o_not_stored -> 0 ->> 1 = 'outdated' THEN o_state := v_before; RETURN NEXT; RETURN; END IF;
      SELECT * INTO v FROM ${schema}.expectation x WHERE x.seq = p_seq AND x.token = p_token AND x.leased FOR UPDATE;
      IF NOT FOUND THEN RAISE EXCEPTION USING ERRCODE = 'PYUND'; END IF;
      SELECT * INTO v_stored FROM ${schema}.stored_event(v.company, v.transaction_id, p_event_types, v_type);
      -- If the transaction has an event of another type, a new event must not be stored. A known event of the type is
      -- allowed.
      IF v_stored.o_id IS NOT NULL AND (v_type IS NULL OR o_seqs[1] IS NOT NULL) OR v_type IS NULL AND v.state <> 'waiting'
      THEN RAISE EXCEPTION USING ERRCODE = 'PYUND'; END IF;
    EXCEPTION WHEN SQLSTATE 'PYUND' THEN
      o_received_ms := NULL; o_seqs := NULL; o_runs := NULL; o_not_stored := NULL; o_fulfilled := NULL;
      v_receive := false;
    END;
  END IF;

  SELECT * INTO v FROM ${schema}.expectation x WHERE x.seq = p_seq AND x.token = p_token AND x.leased FOR UPDATE;
  IF NOT FOUND THEN RETURN NEXT; RETURN; END IF;
  IF v_before IN ('waiting', 'overdue') AND v.state = 'fulfilled' AND o_fulfilled IS NOT NULL THEN o_changed := true; END IF;
  SELECT * INTO v_stored FROM ${schema}.stored_event(v.company, v.transaction_id, p_event_types, NULL);
  IF p_result = 'event' AND v_receive THEN
    v_fulfil := COALESCE(o_not_stored -> 0 ->> 2, p_id[1]);
  ELSIF p_result = 'event' THEN
    o_result := 'contradiction';
    o_detail := left(replace(replace(p_contradiction, '{type}', v_stored.o_type), '{id}', v_stored.o_id), 1000);
    v_fulfil := v_stored.o_id;
  ELSIF p_overdue AND v.state = 'waiting' THEN
    v_fulfil := v_stored.o_id;
  END IF;
  IF v_fulfil IS NOT NULL AND v.state IN ('waiting', 'overdue') THEN
    UPDATE ${schema}.expectation x
       SET ${FULFILLED_BY}
      FROM ${schema}.event e WHERE x.seq = p_seq AND e.company = v.company AND e.id = v_fulfil;
    v.state := 'fulfilled';
    o_changed := true;
  END IF;
  IF p_overdue AND v.state = 'waiting' THEN
    v.state := 'overdue';
    o_changed := true;
  END IF;
  o_settled := true;
  o_state := v.state;
  o_next_ms := CASE WHEN v.state IN ('waiting', 'overdue') THEN p_next_ms END;
  UPDATE ${schema}.expectation x
     SET state = v.state, polls = x.polls + 1, last_poll_at = ${NOW_MS}, last_result = o_result, last_detail = o_detail,
         contradiction = CASE o_result WHEN 'contradiction' THEN o_detail ELSE x.contradiction END,
         lost_polls = CASE WHEN p_keep_lost THEN x.lost_polls ELSE 0 END, leased = false,
         next_poll_at = ${NOW_MS} + o_next_ms
   WHERE x.seq = p_seq;
  RETURN NEXT;
END $settle$;
`;
