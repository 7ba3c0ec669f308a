import type { PaymentsRuntime } from '../../../runtime/payments-runtime.js';
import type { ClaimedDelivery, EventSource, InboxStore } from '../../../inbox/store/inbox-store.js';
import type { ConnectionSource, ResultRow } from '../connection/connection-source.js';
import { prepared } from '../connection/connection-source.js';
import { isRunning, keyLock } from './ordering.js';
import {
  BY_INDEX,
  isClaimable,
  NEEDS_READ_COMMITTED,
  NOW_MS,
  withoutPartialIndex,
} from './postgres-sql.js';
import { fromStored, toStored } from '../../sql/sql-connection.js';

/**
 * The maximum number of deliveries that one claim leases for a handler. The number is limited, because a claim locks
 * the ordering keys that it checks, and the lock table of the database has a limited size.
 */
const MAX_CLAIM = 500;
/**
 * A search that takes at least this many milliseconds counts as slow. Without dead index entries, a search takes less
 * than 1 ms.
 */
const SLOW_MS = 10;
/**
 * A claim starts this many milliseconds before its cursor. A transaction commits later than the times that it writes.
 * Therefore, a delivery that is due before the cursor may become visible after the cursor has moved.
 */
const OVERLAP_MS = 1000;
/**
 * While searches are slow, one claim in this many milliseconds starts at the first delivery instead of at its cursor.
 */
const FULL_SEARCH_MS = 5000;
/**
 * Maximum number of searches of one claim for a handler. A claim searches again if it found deliveries that it could
 * not lease.
 */
const MAX_SEARCHES = 8;
/**
 * If a search found busy keys, the next search reads at least this many deliveries, because such keys may have long
 * backlogs.
 */
const MIN_WINDOW = 200;

/** The columns of a leased delivery. */
const CLAIMED_TYPES = `o_seq bigint, o_company text, o_id text, o_handler text, o_token bigint,
  o_attempt integer, o_crashes integer, o_received_at bigint, o_source text, o_raw bytea,
  o_type text, o_traceparent text`;

/** The values of the columns {@link CLAIMED_TYPES}, from an event `e` and its leased delivery `l`. */
const CLAIMED_VALUES = `
  e.seq, e.company, e.id, l.handler, l.token, l.attempts, l.crashes, e.received_at, e.source, e.raw,
  e.event_type, substring(e.headers FROM '"traceparent":"([0-9a-f-]+)"')`;

/**
 * The columns that an UPDATE sets to lease a delivery `d`. The new token is the time, or the old token plus one if that
 * is greater. After a failover to a replica that has lost the last commits, the stored tokens and numbers of events are
 * lower than before. With the time as the token, an attempt from before the failover cannot settle a delivery that was
 * leased after the failover.
 */
const LEASED = `
  state = 'running', worker = p_worker, due_at = NULL,
  attempts = d.attempts + 1, token = greatest(d.token + 1, ${NOW_MS}), started_at = ${NOW_MS}`;

/** The columns that the function `claim` returns for a delivery, as {@link toClaimed} reads them. */
const CLAIMED_COLUMNS = `o_seq, o_company, o_id, o_handler, o_token, o_attempt, o_crashes, o_source,
  o_type, o_traceparent,
  o_received_at, ${NOW_MS} - o_received_at AS age_ms,
  encode(o_raw, 'base64') AS raw`;

function toClaimed(row: ResultRow): ClaimedDelivery {
  return {
    seq: Number(row['o_seq']),
    company: fromStored(row['o_company']!),
    id: fromStored(row['o_id']!),
    handler: fromStored(row['o_handler']!),
    token: Number(row['o_token']),
    attempt: Number(row['o_attempt']),
    crashes: Number(row['o_crashes']),
    receivedAt: new Date(Number(row['o_received_at']!)),
    ageMs: Math.max(0, Number(row['age_ms'])),
    // Only events whose deliveries are all finished are pruned, so an event with a claimed delivery has its body.
    raw: Buffer.from(row['raw']!, 'base64'),
    source: row['o_source'] as EventSource,
    traced: { traceparent: row['o_traceparent'] ?? null, eventType: fromStored(row['o_type']!) },
  };
}

export function claims(
  source: ConnectionSource,
  schema: string,
  runtime: Pick<PaymentsRuntime, 'monotonic'>,
): Pick<InboxStore, 'claim' | 'claimSuspect' | 'nextDueInMs'> {
  const cursors = new ClaimCursors(runtime);
  const claim = prepared(
    `SELECT ${CLAIMED_COLUMNS}, o_cursor AS cursor_ms, o_search_ms
       FROM ${schema}.claim($1::uuid, $2::text[], $3::integer[], $4::bigint[], $5::boolean)`,
  );
  const nextDue = prepared(
    `SELECT min(${schema}.first_due_ms(n.handler, n.since)) - ${NOW_MS} AS ms
       FROM unnest($1::text[], $2::bigint[]) AS n (handler, since)`,
  );
  return {
    async claim({ workerId, wanted }) {
      if (wanted.length === 0) return [];
      const handlers = wanted.map(({ handler }) => handler);
      const full = cursors.startFullSearch();
      const rows = await source.query(claim, [
        workerId,
        handlers.map(toStored),
        wanted.map(({ limit }) => Math.min(limit, MAX_CLAIM)),
        full ? handlers.map(() => null) : cursors.startsOf(handlers),
        false,
      ]);
      const searches = rows.filter((row) => row['cursor_ms'] !== null);
      for (const row of searches) {
        cursors.advance(fromStored(row['o_handler']!), Number(row['cursor_ms']));
      }
      if (full) cursors.endFullSearch(searches.map((row) => Number(row['o_search_ms'])));
      return rows.filter((row) => row['o_seq'] !== null).map(toClaimed);
    },

    async claimSuspect({ workerId, handlers }) {
      const limits = handlers.map(() => 1);
      const values = [workerId, handlers.map(toStored), limits, handlers.map(() => null), true];
      const rows = await source.query(claim, values);
      const row = rows.find((one) => one['o_seq'] !== null);
      return row === undefined ? null : toClaimed(row);
    },

    async nextDueInMs(handlers) {
      const values = [handlers.map(toStored), cursors.startsOf(handlers)];
      const [row] = await source.query(nextDue, values);
      const ms = row!['ms'];
      return ms == null ? null : Number(ms);
    },
  };
}

/**
 * The cursors of the claims of each handler: the due times at which the claims may start. While another transaction is
 * open, the database cannot remove the index entries of claimed deliveries, and a claim that starts at the first entry
 * reads all of them. Therefore, while searches are slow, the claims of a handler start at a cursor: the due time of the
 * first delivery that the previous claim found. If the transaction of a delivery took long, the delivery may appear
 * before the cursor. Therefore, every few seconds, a claim starts at the first entry.
 */
export class ClaimCursors {
  /** The cursors by handler, in milliseconds since the epoch, by the store clock. */
  readonly #cursors = new Map<string, number>();
  #slow = false;
  #nextFullSearchAt = -Infinity;

  constructor(private readonly runtime: Pick<PaymentsRuntime, 'monotonic'>) {}

  /** Returns whether the next claim starts at the first delivery of each handler. */
  startFullSearch(): boolean {
    const now = this.runtime.monotonic();
    if (this.#slow && now < this.#nextFullSearchAt) return false;
    this.#nextFullSearchAt = now + FULL_SEARCH_MS;
    return true;
  }

  endFullSearch(searchMs: readonly number[]): void {
    this.#slow = Math.max(0, ...searchMs) >= SLOW_MS;
  }

  /** Returns the due time at which the claim of each handler starts; `null` to start at the first delivery. */
  startsOf(handlers: readonly string[]): (number | null)[] {
    return handlers.map((handler) => {
      const cursor = this.#slow ? this.#cursors.get(handler) : undefined;
      return cursor === undefined ? null : cursor - OVERLAP_MS;
    });
  }

  /**
   * @param cursorMs the due time of the first delivery that the claim found; if there is none, the time of the claim
   */
  advance(handler: string, cursorMs: number): void {
    this.#cursors.set(handler, cursorMs);
  }
}

/**
 * The function `claim` leases deliveries, with several statements in one round trip. No statement waits for the lock of
 * a key or for a row. `ordering.ts` describes the locks. In addition to the deliveries, `claim` returns a row for each
 * handler. The row of a handler contains the duration of the first search and a cursor, which is a time before which
 * the claim found no due delivery. With `p_suspects`, `claim` leases only suspects, and only of the first handler that
 * has a suspect that can be leased.
 */
export const claimFunctions = (schema: string): string => `
CREATE OR REPLACE FUNCTION ${schema}.claim(p_worker uuid, p_handlers text[], p_limits integer[], p_since_ms bigint[],
  p_suspects boolean)
RETURNS TABLE (${CLAIMED_TYPES}, o_cursor bigint, o_search_ms double precision)
LANGUAGE plpgsql VOLATILE ${BY_INDEX}
AS $claim$
DECLARE
  v_now CONSTANT bigint := ${NOW_MS};
  v_suspect CONSTANT integer := p_suspects::integer;
  v_handler text;
  v_left integer;
  v_window integer;
  v_waiting integer;
  v_cursors bigint[];
  v_search_ms float8[];
  v_started timestamptz;
  -- The last delivery that the previous search read.
  v_due bigint;
  v_event bigint;
  -- The number of deliveries that the search read.
  v_seen integer;
  v_first bigint;
  -- The deliveries of the search whose key this transaction has locked, and the deliveries of these that the
  -- transaction leased.
  v_orderings uuid[];
  v_events bigint[];
  v_taken bigint[];
  -- All deliveries that were leased so far.
  v_claimed_events bigint[];
  v_claimed_handlers text[];
BEGIN
  ${NEEDS_READ_COMMITTED}
  FOR v_position IN 1..cardinality(p_handlers) LOOP
    v_handler := p_handlers[v_position];
    v_left := p_limits[v_position];
    v_due := COALESCE(p_since_ms[v_position], 0);
    v_cursors[v_position] := NULL;
    v_search_ms[v_position] := 0;
    v_event := 0;
    v_waiting := 0;
    CONTINUE WHEN p_suspects AND v_claimed_events <> '{}';
    CONTINUE WHEN EXISTS (SELECT FROM ${schema}.pause p WHERE p.handler IN (v_handler, '*'));
    v_started := clock_timestamp();
    FOR v_search IN 1..${MAX_SEARCHES} LOOP
      v_window := CASE WHEN v_waiting > 0 THEN greatest(p_limits[v_position], ${MIN_WINDOW}) ELSE p_limits[v_position] END;
      SELECT array_agg(f.ordering) FILTER (WHERE f.free), array_agg(f.event) FILTER (WHERE f.free), count(*),
             min(f.due_at), (array_agg(f.due_at))[count(*)], (array_agg(f.event))[count(*)]
        INTO v_orderings, v_events, v_seen, v_first, v_due, v_event
        FROM (
          SELECT c.*, c.ordering IS NULL OR pg_try_advisory_xact_lock(${keyLock('c.ordering', 'v_handler')}) AS free
            FROM (
              SELECT d.event, d.ordering, d.due_at FROM ${schema}.delivery d
               WHERE d.handler = v_handler AND ${isClaimable('v_suspect')}
                 AND d.due_at >= v_due AND d.due_at <= v_now AND (d.due_at, d.event) > (v_due, v_event)
               ORDER BY d.due_at, d.event LIMIT v_window
            ) c
          -- Keeps the planner from merging the subqueries, so that each lock is taken once.
          OFFSET 0
        ) f;
      IF v_search = 1 THEN
        v_cursors[v_position] := COALESCE(v_first, v_now);
        v_search_ms[v_position] := date_part('epoch', clock_timestamp() - v_started) * 1000;
      END IF;
      IF cardinality(v_events) > 0 THEN
        WITH locked AS MATERIALIZED (
          SELECT l.tuple, n.position, n.ordering,
                 n.ordering IS NOT NULL AND ${isRunning(schema, 'n.ordering', 'v_handler')} AS busy
            FROM unnest(v_orderings, v_events) WITH ORDINALITY AS n (ordering, event, position)
           CROSS JOIN LATERAL (
             SELECT d.ctid AS tuple FROM ${schema}.delivery d
              WHERE d.event = n.event AND d.handler = v_handler
                AND ${withoutPartialIndex(`${isClaimable('v_suspect')} AND d.due_at <= v_now`)}
              LIMIT 1 FOR UPDATE OF d SKIP LOCKED
           ) l
        ), numbered AS (
          SELECT k.*, row_number() OVER (PARTITION BY COALESCE(k.ordering::text, k.position::text) ORDER BY k.position) AS nth
            FROM locked k
        ), chosen AS MATERIALIZED (
          SELECT n.position, n.tuple, n.ordering FROM numbered n
           WHERE n.nth = 1 AND NOT n.busy ORDER BY n.position LIMIT v_left
        ), waiting AS (
          UPDATE ${schema}.delivery d SET waiting = true FROM numbered n
           WHERE d.ctid = n.tuple AND (n.busy OR (
             n.nth > 1 AND n.ordering IN (SELECT c.ordering FROM chosen c WHERE c.ordering IS NOT NULL)))
          RETURNING 1
        ), taken AS (
          -- The rows are found by ctid, because they are locked. A row that has changed since this statement began is
          -- not found by its ctid, and remains for the next claim.
          UPDATE ${schema}.delivery d SET ${LEASED} FROM chosen c WHERE d.ctid = c.tuple
          RETURNING c.position, d.event
        )
        SELECT array_agg(t.event ORDER BY t.position), (SELECT count(*) FROM waiting) INTO v_taken, v_waiting FROM taken t;
        v_claimed_events := v_claimed_events || v_taken;
        v_claimed_handlers := v_claimed_handlers || array_fill(v_handler, ARRAY[COALESCE(cardinality(v_taken), 0)]);
        v_left := v_left - COALESCE(cardinality(v_taken), 0);
      END IF;
      EXIT WHEN v_left <= 0 OR v_seen < v_window;
    END LOOP;
  END LOOP;
  RETURN QUERY
  SELECT ${CLAIMED_VALUES}, NULL::bigint, NULL::double precision
    FROM unnest(v_claimed_events, v_claimed_handlers) WITH ORDINALITY AS n (event, handler, position)
    JOIN ${schema}.delivery l ON l.event = n.event AND l.handler = n.handler
    JOIN ${schema}.event e ON e.seq = n.event
   ORDER BY n.position;
  RETURN QUERY
  SELECT NULL::bigint, NULL, NULL, n.handler, NULL::bigint, NULL::integer, NULL::integer, NULL::bigint,
         NULL, NULL::bytea, NULL, NULL, n.cursor, n.search_ms
    FROM unnest(p_handlers, v_cursors, v_search_ms) AS n (handler, cursor, search_ms);
END $claim$;

-- Returns the first due time of a handler at or after p_since_ms, in milliseconds since the epoch. If p_since_ms is
-- NULL, any due time counts. The function returns NULL if the handler is paused or has no pending delivery.
CREATE OR REPLACE FUNCTION ${schema}.first_due_ms(p_handler text, p_since_ms bigint)
RETURNS bigint LANGUAGE plpgsql STABLE ${BY_INDEX}
AS $due$
BEGIN
  IF EXISTS (SELECT FROM ${schema}.pause p WHERE p.handler IN (p_handler, '*')) THEN RETURN NULL; END IF;
  RETURN (
    SELECT d.due_at FROM ${schema}.delivery d
     WHERE d.handler = p_handler AND ${isClaimable(0)}
       AND d.due_at >= COALESCE(p_since_ms, 0)
     ORDER BY d.due_at LIMIT 1);
END $due$;
`;
