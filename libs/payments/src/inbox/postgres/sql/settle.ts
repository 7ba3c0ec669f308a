import { boundedError, HISTORY_LENGTH } from '../../store/stored-event.js';
import type { Lease, SettleResult } from '../../store/inbox-store.js';
import type { ConnectionSource } from '../connection/connection-source.js';
import { prepared } from '../connection/database-connection.js';
import type { Prepared } from '../connection/database-connection.js';
import { elementsOf } from './stored-rows.js';
import { asInterval, BY_INDEX, hidden, NOW } from './planner-settings.js';
import { toStored } from './stored-text.js';

/** The longest delay that is stored: 100 years. */
const MAX_DUE_MS = 3_155_760_000_000;

/** How the run of a delivery ended. */
export interface Ended {
  readonly lease: Lease;
  readonly kind: 'done' | 'failed' | 'released';
  readonly error: string | null;
  /** When it is due again; `null`: not again. */
  readonly dueInMs: number | null;
}

export function completed(lease: Lease): Ended {
  return { lease, kind: 'done', error: null, dueInMs: null };
}

export function failed(
  lease: Lease,
  { error, retryInMs }: { error: string; retryInMs: number | null },
): Ended {
  return { lease, kind: 'failed', error: toStored(boundedError(error)), dueInMs: retryInMs };
}

export function released(lease: Lease, dueInMs: number): Ended {
  return { lease, kind: 'released', error: null, dueInMs };
}

/** Settles any number of leases in one statement. */
export class SettleStatement {
  readonly #statement: Prepared;

  constructor(
    private readonly source: ConnectionSource,
    schema: string,
  ) {
    this.#statement = prepared(
      `SELECT * FROM ${schema}.settle($1::bigint[], $2::text[], $3::bigint[], $4::text[], $5::text[], $6::float8[])`,
    );
  }

  /** In the order of `all`. `null`: another transaction holds the delivery; ask again. */
  async settle(all: readonly Ended[]): Promise<(SettleResult | null)[]> {
    const [row] = await this.source.query(this.#statement, [
      all.map(({ lease }) => lease.seq),
      all.map(({ lease }) => toStored(lease.handler)),
      all.map(({ lease }) => lease.token),
      all.map(({ kind }) => kind),
      all.map(({ error }) => error),
      all.map(({ dueInMs }) => (dueInMs === null ? null : Math.min(dueInMs, MAX_DUE_MS))),
    ]);
    const settled = placesOf(row!['o_settled']);
    const next = placesOf(row!['o_next']);
    const locked = placesOf(row!['o_locked']);
    return all.map((_ended, index) => {
      if (locked.has(index)) return null;
      return { settled: settled.has(index), nextDue: next.has(index) };
    });
  }
}

/** The places from 0 in an array that counts them from 1. */
function placesOf(array: string | null | undefined): Set<number> {
  return new Set(elementsOf(array).map((place) => Number(place) - 1));
}

/**
 * The history of a delivery `d` with one more attempt, without the oldest of too many. `ended`, `outcome` and `error` are
 * SQL; see `HistoryEntry` for the format.
 */
export function appended(ended: string, outcome: string, error?: string): string {
  const started = `COALESCE(d.started_at, ${ended})`;
  const entry = [
    'd.attempts',
    `(date_part('epoch', ${started}) * 1000)::bigint`,
    `(date_part('epoch', ${ended} - ${started}) * 1000)::bigint`,
    `${outcome}::text`,
    error ?? [],
  ].flat();
  return `CASE WHEN jsonb_array_length(d.history) >= ${HISTORY_LENGTH} THEN d.history - 0
       ELSE COALESCE(d.history, '[]'::jsonb) END
    || jsonb_build_array(jsonb_build_array(${entry.join(', ')}))`;
}

/** Waits for no row: one that is locked may be for long, and the others need not wait for it. */
export const settleFunction = (schema: string): string => `
CREATE FUNCTION ${schema}.settle(p_events bigint[], p_handlers text[], p_tokens bigint[], p_kinds text[],
  p_errors text[], p_due_ms double precision[])
RETURNS TABLE (o_settled bigint[], o_next bigint[], o_locked bigint[])
LANGUAGE plpgsql VOLATILE ${BY_INDEX}
AS $settle$
DECLARE
  v_now CONSTANT timestamptz := ${NOW};
  v_orderings uuid[];
  v_handlers text[];
  v_next text[];
BEGIN
  WITH locked AS MATERIALIZED (
    SELECT l.tuple, s.*
      FROM unnest(p_events, p_handlers, p_tokens, p_kinds, p_errors, p_due_ms)
        WITH ORDINALITY AS s (event, handler, token, kind, error, due_ms, place)
     CROSS JOIN LATERAL (
       SELECT d.ctid AS tuple FROM ${schema}.delivery d
        WHERE d.event = s.event AND d.handler = s.handler AND d.token = s.token
          AND ${hidden(`d.state = 'running'`)}
        LIMIT 1 FOR UPDATE OF d SKIP LOCKED
     ) l
  ), settled AS (
    UPDATE ${schema}.delivery d
       SET state = CASE WHEN s.kind = 'done' THEN 'done' WHEN s.due_ms IS NULL THEN 'dead' ELSE 'pending' END,
           worker = NULL,
           alone = false,
           due_at = v_now + ${asInterval('s.due_ms')},
           finished_at = CASE WHEN s.due_ms IS NULL THEN v_now END,
           attempts = CASE s.kind WHEN 'released' THEN d.attempts - 1 ELSE d.attempts END,
           crashes = CASE s.kind WHEN 'released' THEN d.crashes ELSE 0 END,
           ended_at = CASE s.kind WHEN 'released' THEN d.ended_at ELSE v_now END,
           last_error = COALESCE(s.error, d.last_error),
           history = CASE s.kind WHEN 'done' THEN ${appended('v_now', `'d'`)}
                                 WHEN 'failed' THEN ${appended('v_now', `'f'`, 's.error')}
                                 ELSE d.history END
      -- By its place while it is locked. One that was changed since this statement began is not found there, and
      -- settled with the next statement if its token is still the same.
      FROM locked s WHERE d.ctid = s.tuple
    RETURNING s.place, d.ordering, d.handler
  )
  SELECT array_agg(t.place), array_agg(t.ordering), array_agg(t.handler)
    INTO o_settled, v_orderings, v_handlers FROM settled t;

  SELECT array_agg(r.o_ordering::text || r.o_handler) INTO v_next
    FROM ${schema}.release_next(v_orderings, v_handlers) r;

  IF v_next IS NOT NULL THEN
    SELECT array_agg(t.place) INTO o_next
      FROM unnest(o_settled, v_orderings, v_handlers) AS t (place, ordering, handler)
     WHERE t.ordering::text || t.handler = ANY (v_next);
  END IF;
  IF cardinality(o_settled) IS DISTINCT FROM cardinality(p_events) THEN
    SELECT array_agg(s.place) INTO o_locked
      FROM unnest(p_events, p_handlers, p_tokens) WITH ORDINALITY AS s (event, handler, token, place)
     WHERE s.place <> ALL (COALESCE(o_settled, '{}')) AND EXISTS (
       SELECT FROM ${schema}.delivery d
        WHERE d.event = s.event AND d.handler = s.handler AND d.token = s.token
          AND ${hidden(`d.state = 'running'`)});
  END IF;
  RETURN NEXT;
END $settle$;
`;
