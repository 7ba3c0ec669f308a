import type { ClaimedDelivery, ClaimRequest } from '../../store/inbox-store.js';
import type { ConnectionSource } from '../connection/connection-source.js';
import { prepared } from '../connection/database-connection.js';
import type { Prepared, Row } from '../connection/database-connection.js';
import type { ClaimCursors } from './claim-cursors.js';
import { isRunning, keyLock, newerHandled } from './ordering.js';
import { BY_INDEX, epochMs, hidden, NOW } from './planner-settings.js';
import { toBody, toDate } from './stored-rows.js';
import { fromStored, toStored } from './stored-text.js';

/** A claim locks the ordering keys that it looks at, and the database's table of locks is finite. */
const MAX_CLAIM = 500;
/** How often a claim looks further, behind deliveries that it cannot have. */
const LOOKS = 8;
/** How many it looks at after it has held some: the backlog of their key may be long. */
const WINDOW = 200;

/** What a claim returns of a delivery, from the columns of {@link CLAIMED_TYPES}. */
export const CLAIMED_COLUMNS = `o_seq, o_company, o_id, o_handler, o_token, o_attempt, o_crashes, o_newer,
  ${epochMs('o_received_at')} AS received_ms, ${epochMs('clock_timestamp() - o_received_at')} AS age_ms,
  encode(o_raw, 'base64') AS raw`;

/** Columns of a function that leases deliveries. */
export const CLAIMED_TYPES = `o_seq bigint, o_company text, o_id text, o_handler text, o_token bigint,
  o_attempt integer, o_crashes integer, o_received_at timestamptz, o_raw bytea, o_newer boolean`;

/** Those columns, of an event `e` and its leased delivery `l`. */
export const claimedValues = (schema: string): string => `
  e.seq, e.company, e.id, l.handler, l.token, l.attempts, l.crashes, e.received_at, e.raw,
  e.ordering IS NOT NULL AND ${newerHandled(schema, 'e.ordering', 'l.handler', 'e.occurred_at')}`;

/** What an UPDATE that leases a delivery `d` sets. */
export const leased = (alone: string): string => `
  state = 'running', worker = p_worker, alone = ${alone}, due_at = NULL,
  attempts = d.attempts + 1, token = d.token + 1, started_at = ${NOW}`;

export function toClaimed(row: Row): ClaimedDelivery {
  return {
    seq: Number(row['o_seq']),
    company: fromStored(row['o_company']!),
    id: fromStored(row['o_id']!),
    handler: fromStored(row['o_handler']!),
    token: Number(row['o_token']),
    attempt: Number(row['o_attempt']),
    crashes: Number(row['o_crashes']),
    receivedAt: toDate(row['received_ms']!),
    ageMs: Math.max(0, Math.round(Number(row['age_ms']))),
    // Only events whose deliveries are all finished are pruned, so a claimed one has its body.
    raw: toBody(row['raw']!),
    newerHandled: row['o_newer'] === 't',
  };
}

/** Leases due deliveries. */
export class ClaimStatement {
  readonly #statement: Prepared;

  constructor(
    private readonly source: ConnectionSource,
    schema: string,
    private readonly cursors: ClaimCursors,
  ) {
    this.#statement = prepared(
      `SELECT ${CLAIMED_COLUMNS}, ${epochMs('o_cursor')} AS cursor_ms, o_look_ms
         FROM ${schema}.claim($1::uuid, $2::text[], $3::integer[], $4::float8[])`,
    );
  }

  async claim({ worker, wanted }: ClaimRequest): Promise<ClaimedDelivery[]> {
    if (wanted.length === 0) return [];
    const handlers = wanted.map(({ handler }) => handler);
    const since = this.cursors.found;
    const rows = await this.source.query(this.#statement, [
      worker,
      handlers.map(toStored),
      wanted.map(({ limit }) => Math.min(limit, MAX_CLAIM)),
      this.cursors.startsOf(handlers),
    ]);
    for (const { o_handler, cursor_ms, o_look_ms } of rows) {
      if (cursor_ms == null) continue;
      this.cursors.looked(fromStored(o_handler!), Number(cursor_ms), Number(o_look_ms), since);
    }
    return rows.filter((row) => row['o_seq'] !== null).map(toClaimed);
  }
}

/**
 * Several statements in one round trip. Nothing in it waits, neither for the lock of a key nor for a row. See
 * `ordering.ts` for the locks. Besides the deliveries it returns a row for each handler with a cursor, before which it
 * saw nothing that is due, and how long the first look took.
 */
export const claimFunction = (schema: string): string => `
CREATE FUNCTION ${schema}.claim(p_worker uuid, p_handlers text[], p_limits integer[], p_since_ms float8[])
RETURNS TABLE (${CLAIMED_TYPES}, o_cursor timestamptz, o_look_ms double precision)
LANGUAGE plpgsql VOLATILE ${BY_INDEX}
AS $claim$
DECLARE
  v_now CONSTANT timestamptz := clock_timestamp();
  v_handler text;
  v_left integer;
  v_window integer;
  v_held integer;
  v_cursors timestamptz[];
  v_look_ms float8[];
  v_begun timestamptz;
  -- Where the last look ended.
  v_due timestamptz;
  v_event bigint;
  v_seen integer;
  v_first timestamptz;
  v_keys uuid[];
  v_events bigint[];
  v_taken bigint[];
  r_events bigint[];
  r_handlers text[];
BEGIN
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION 'claims of the payment inbox need READ COMMITTED, and this transaction is %',
      current_setting('transaction_isolation');
  END IF;
  FOR v_place IN 1..cardinality(p_handlers) LOOP
    v_handler := p_handlers[v_place];
    v_left := p_limits[v_place];
    v_due := COALESCE(to_timestamp(p_since_ms[v_place] / 1000), '-infinity');
    v_cursors[v_place] := NULL;
    v_look_ms[v_place] := 0;
    v_event := 0;
    v_held := 0;
    CONTINUE WHEN EXISTS (SELECT FROM ${schema}.pause p WHERE p.handler IN (v_handler, '*'));
    v_begun := clock_timestamp();
    FOR v_look IN 1..${LOOKS} LOOP
      v_window := CASE WHEN v_held > 0 THEN greatest(p_limits[v_place], ${WINDOW}) ELSE p_limits[v_place] END;
      SELECT array_agg(f.ordering) FILTER (WHERE f.free), array_agg(f.event) FILTER (WHERE f.free), count(*),
             min(f.due_at), (array_agg(f.due_at))[count(*)], (array_agg(f.event))[count(*)]
        INTO v_keys, v_events, v_seen, v_first, v_due, v_event
        FROM (
          SELECT c.*, c.ordering IS NULL OR pg_try_advisory_xact_lock(${keyLock('c.ordering', 'v_handler')}) AS free
            FROM (
              SELECT d.event, d.ordering, d.due_at FROM ${schema}.delivery d
               WHERE d.handler = v_handler AND d.state = 'pending' AND NOT d.held AND d.crashes = 0
                 AND d.due_at >= v_due AND d.due_at <= v_now AND (d.due_at, d.event) > (v_due, v_event)
               ORDER BY d.due_at, d.event LIMIT v_window
            ) c
          -- Evaluated as it is, so that each lock is taken once.
          OFFSET 0
        ) f;
      IF v_look = 1 THEN
        v_cursors[v_place] := COALESCE(v_first, v_now);
        v_look_ms[v_place] := ${epochMs('clock_timestamp() - v_begun')};
      END IF;
      IF cardinality(v_events) > 0 THEN
        WITH locked AS MATERIALIZED (
          SELECT l.tuple, n.place, n.ordering,
                 n.ordering IS NOT NULL AND ${isRunning(schema, 'n.ordering', 'v_handler')} AS busy
            FROM unnest(v_keys, v_events) WITH ORDINALITY AS n (ordering, event, place)
           CROSS JOIN LATERAL (
             SELECT d.ctid AS tuple FROM ${schema}.delivery d
              WHERE d.event = n.event AND d.handler = v_handler
                AND ${hidden(`d.state = 'pending' AND NOT d.held AND d.crashes = 0 AND d.due_at <= v_now`)}
              LIMIT 1 FOR UPDATE OF d SKIP LOCKED
           ) l
        ), numbered AS (
          SELECT k.*, row_number() OVER (PARTITION BY COALESCE(k.ordering::text, k.place::text) ORDER BY k.place) AS nth
            FROM locked k
        ), chosen AS MATERIALIZED (
          SELECT n.place, n.tuple, n.ordering FROM numbered n
           WHERE n.nth = 1 AND NOT n.busy ORDER BY n.place LIMIT v_left
        ), held AS (
          UPDATE ${schema}.delivery d SET held = true FROM numbered n
           WHERE d.ctid = n.tuple AND (n.busy OR (
             n.nth > 1 AND n.ordering IN (SELECT c.ordering FROM chosen c WHERE c.ordering IS NOT NULL)))
          RETURNING 1
        ), taken AS (
          -- By its place while it is locked. One that was changed since this statement began is not found there, and
          -- left for the next claim.
          UPDATE ${schema}.delivery d SET ${leased('false')} FROM chosen c WHERE d.ctid = c.tuple
          RETURNING c.place, d.event
        )
        SELECT array_agg(t.event ORDER BY t.place), (SELECT count(*) FROM held) INTO v_taken, v_held FROM taken t;
        r_events := r_events || v_taken;
        r_handlers := r_handlers || array_fill(v_handler, ARRAY[COALESCE(cardinality(v_taken), 0)]);
        v_left := v_left - COALESCE(cardinality(v_taken), 0);
      END IF;
      EXIT WHEN v_left <= 0 OR v_seen < v_window;
    END LOOP;
  END LOOP;
  RETURN QUERY
  SELECT ${claimedValues(schema)}, NULL::timestamptz, NULL::double precision
    FROM unnest(r_events, r_handlers) WITH ORDINALITY AS n (event, handler, place)
    JOIN ${schema}.delivery l ON l.event = n.event AND l.handler = n.handler
    JOIN ${schema}.event e ON e.seq = n.event
   ORDER BY n.place;
  RETURN QUERY
  SELECT NULL::bigint, NULL, NULL, n.handler, NULL::bigint, NULL::integer, NULL::integer, NULL::timestamptz,
         NULL::bytea, NULL::boolean, n.cursor, n.look_ms
    FROM unnest(p_handlers, v_cursors, v_look_ms) AS n (handler, cursor, look_ms);
END $claim$;
`;
