import { boundedError, HISTORY_LENGTH } from '../../../inbox/store/stored-event.js';
import type { Lease, SettleResult } from '../../../inbox/store/inbox-store.js';
import {
  arraysOf,
  declarationOf,
  elementsOf,
  namesIn,
  placeholdersFor,
} from '../connection/array-parameters.js';
import type { Columns } from '../connection/array-parameters.js';
import { Batcher } from '../../../inbox/store/batcher.js';
import type { PaymentsRuntime } from '../../../runtime/payments-runtime.js';
import type { ConnectionSource } from '../connection/connection-source.js';
import { isValueError, PostgresInboxError, prepared } from '../connection/connection-source.js';
import { BY_INDEX, IS_STRICT, NOW_MS, withoutPartialIndex } from './postgres-sql.js';
import { MAX_DELAY_MS, toStored } from '../../sql/sql-connection.js';

/** Milliseconds between two attempts to write an outcome while another transaction has locked the delivery. */
const LOCKED_RETRY_MS = 10;

interface LeaseOutcome {
  readonly lease: Lease;
  readonly kind: 'done' | 'failed' | 'released';
  readonly error: string | null;
  readonly frames?: string | undefined;
  /** Milliseconds until the delivery is due again; `null` if the delivery is finished. */
  readonly dueInMs: number | null;
}

/** The parameters of the function `settle` for each outcome. */
const OUTCOME_COLUMNS: Columns<LeaseOutcome> = {
  event: ['bigint', ({ lease }) => lease.seq],
  handler: ['text', ({ lease }) => toStored(lease.handler)],
  token: ['bigint', ({ lease }) => lease.token],
  kind: ['text', ({ kind }) => kind],
  error: ['text', ({ error }) => error && toStored(boundedError(error))],
  frames: ['text', ({ frames }) => (frames ? toStored(frames) : null)],
  due_ms: ['bigint', ({ dueInMs }) => dueInMs && Math.round(Math.min(dueInMs, MAX_DELAY_MS))],
};
const SETTLE_PARAMETERS = declarationOf(OUTCOME_COLUMNS, 'p_');

/**
 * Returns a function that writes an outcome, and resolves when the outcome is committed. Outcomes that arrive together
 * are written with one statement. If another transaction keeps the delivery locked for longer than `timeoutMs`, the
 * function rejects.
 */
export function settlements(
  source: Pick<ConnectionSource, 'query'>,
  schema: string,
  timeoutMs: number,
  runtime: Pick<PaymentsRuntime, 'monotonic' | 'schedule'>,
): (outcome: LeaseOutcome) => Promise<SettleResult> {
  const statement = prepared(
    `SELECT * FROM ${schema}.settle(${placeholdersFor(SETTLE_PARAMETERS)})`,
  );
  const batcher = new Batcher<LeaseOutcome, SettleResult | 'locked'>({
    async call(outcomes) {
      const [row] = await source.query(statement, arraysOf(OUTCOME_COLUMNS, outcomes));
      const settled = indexesOf(row!['o_settled']);
      const nextDue = indexesOf(row!['o_next']);
      const locked = indexesOf(row!['o_locked']);
      return outcomes.map((_outcome, index) =>
        locked.has(index) ? 'locked' : { settled: settled.has(index), nextDue: nextDue.has(index) },
      );
    },
    maxCalls: 1,
    bytesOf: ({ error, frames }) => (error?.length ?? 0) + (frames?.length ?? 0),
    isValueError,
  });
  return async (outcome) => {
    const end = runtime.monotonic() + timeoutMs;
    for (;;) {
      const [result] = await batcher.add([outcome]);
      if (result !== 'locked') return result!;
      if (runtime.monotonic() >= end) break;
      await new Promise<void>((resolve) => runtime.schedule(LOCKED_RETRY_MS, resolve));
    }
    const { id, handler } = outcome.lease;
    throw new PostgresInboxError(
      `The delivery of event ${id} to ${handler} could not be settled within ${timeoutMs} ms, because another ` +
        'transaction has locked its row. Look for a long transaction in the database.',
      null,
    );
  };
}

/** Returns indexes from 0, for an array in which PostgreSQL returned positions from 1. */
function indexesOf(array: string | null | undefined): Set<number> {
  return new Set(elementsOf(array).map((position) => Number(position) - 1));
}

/**
 * SQL for the history of a delivery `d` with one more attempt. If the history is full, its oldest attempt is removed.
 * Each argument is an SQL expression. The value of `outcome` is a code of `HistoryEntry`: `d` for done, `f` for failed,
 * `l` for lost.
 */
export function historyWith(endedAt: string, outcome: string, error?: string): string {
  const startedAt = `COALESCE(d.started_at, ${endedAt})`;
  const entry = [
    'd.attempts',
    startedAt,
    `${endedAt} - ${startedAt}`,
    `${outcome}::text`,
    error ?? [],
  ].flat();
  return `CASE WHEN jsonb_array_length(d.history) >= ${HISTORY_LENGTH} THEN d.history - 0
       ELSE COALESCE(d.history, '[]'::jsonb) END
    || jsonb_build_array(jsonb_build_array(${entry.join(', ')}))`;
}

/** SQL: the outcomes as rows `s`, with their positions. */
const outcomeRows = `unnest(${namesIn(SETTLE_PARAMETERS)})
        WITH ORDINALITY AS s (${Object.keys(OUTCOME_COLUMNS).join(', ')}, position)`;

/** Results of the function `finish`. */
export const FINISHED = {
  leaseLost: 0,
  done: 1,
  /** Done, and the next waiting delivery of the key is claimable. */
  nextDue: 2,
  /**
   * Done. The isolation level hides waiting deliveries from the transaction, so `release_unreleased` has to make the
   * next waiting delivery claimable after the commit.
   */
  nextHidden: 3,
} as const;

/**
 * The function `settle` writes outcomes. The function skips a locked row, because the lock may last long, and the
 * outcomes of other rows must not wait for it.
 */
export const settleFunctions = (schema: string): string => `
CREATE OR REPLACE FUNCTION ${schema}.settle(${SETTLE_PARAMETERS})
RETURNS TABLE (o_settled bigint[], o_next bigint[], o_locked bigint[])
LANGUAGE plpgsql VOLATILE ${BY_INDEX}
AS $settle$
DECLARE
  v_now CONSTANT bigint := ${NOW_MS};
  v_orderings uuid[];
  v_handlers text[];
  v_next text[];
BEGIN
  WITH locked AS MATERIALIZED (
    SELECT l.tuple, s.*
      FROM ${outcomeRows}
     CROSS JOIN LATERAL (
       SELECT d.ctid AS tuple FROM ${schema}.delivery d
        WHERE d.event = s.event AND d.handler = s.handler AND d.token = s.token
          AND ${withoutPartialIndex(`d.state = 'running'`)}
        LIMIT 1 FOR UPDATE OF d SKIP LOCKED
     ) l
  ), settled AS (
    UPDATE ${schema}.delivery d
       SET state = CASE WHEN s.kind = 'done' THEN 'done' WHEN s.due_ms IS NULL THEN 'dead' ELSE 'pending' END,
           worker = NULL,
           due_at = v_now + s.due_ms,
           finished_at = CASE WHEN s.due_ms IS NULL THEN v_now END,
           attempts = CASE s.kind WHEN 'released' THEN d.attempts - 1 ELSE d.attempts END,
           crashes = CASE s.kind WHEN 'released' THEN d.crashes ELSE 0 END,
           failed_at = CASE s.kind WHEN 'failed' THEN v_now ELSE d.failed_at END,
           last_error = COALESCE(s.error, d.last_error),
           frames = CASE s.kind WHEN 'failed' THEN s.frames ELSE d.frames END,
           history = CASE s.kind WHEN 'failed' THEN ${historyWith('v_now', `'f'`, 's.error')} ELSE d.history END
      -- The rows are found by ctid, because they are locked. A row that has changed since this statement began is not
      -- found by its ctid. A later call settles that row if its token is still the same.
      FROM locked s WHERE d.ctid = s.tuple
    RETURNING s.position, d.ordering, d.handler
  )
  SELECT array_agg(t.position), array_agg(t.ordering), array_agg(t.handler)
    INTO o_settled, v_orderings, v_handlers FROM settled t;

  SELECT array_agg(r.o_ordering::text || r.o_handler) INTO v_next
    FROM ${schema}.release_next(v_orderings, v_handlers) r;

  IF v_next IS NOT NULL THEN
    SELECT array_agg(t.position) INTO o_next
      FROM unnest(o_settled, v_orderings, v_handlers) AS t (position, ordering, handler)
     WHERE t.ordering::text || t.handler = ANY (v_next);
  END IF;
  IF cardinality(o_settled) IS DISTINCT FROM cardinality(p_event) THEN
    SELECT array_agg(s.position) INTO o_locked
      FROM ${outcomeRows}
     WHERE s.position <> ALL (COALESCE(o_settled, '{}')) AND EXISTS (
       SELECT FROM ${schema}.delivery d
        WHERE d.event = s.event AND d.handler = s.handler AND d.token = s.token
          AND ${withoutPartialIndex(`d.state = 'running'`)});
  END IF;
  RETURN NEXT;
END $settle$;

-- Marks a delivery as done. The call is the last statement of the transaction, so that no row of the inbox is locked
-- while the work runs.
CREATE OR REPLACE FUNCTION ${schema}.finish(p_event bigint, p_handler text, p_token bigint) RETURNS integer
LANGUAGE plpgsql VOLATILE ${BY_INDEX}
AS $finish$
DECLARE
  v_now CONSTANT bigint := ${NOW_MS};
  v_ordering uuid;
BEGIN
  UPDATE ${schema}.delivery d
     SET state = 'done', worker = NULL, crashes = 0, finished_at = v_now
   WHERE d.event = p_event AND d.handler = p_handler AND d.token = p_token AND ${withoutPartialIndex(`d.state = 'running'`)}
  RETURNING d.ordering INTO v_ordering;
  IF NOT FOUND THEN RETURN ${FINISHED.leaseLost}; END IF;
  IF v_ordering IS NULL THEN RETURN ${FINISHED.done}; END IF;
  IF ${IS_STRICT} THEN
    INSERT INTO ${schema}.unreleased (ordering, handler) VALUES (v_ordering, p_handler);
    RETURN ${FINISHED.nextHidden};
  END IF;
  PERFORM FROM ${schema}.release_next(ARRAY[v_ordering], ARRAY[p_handler]);
  RETURN CASE WHEN FOUND THEN ${FINISHED.nextDue} ELSE ${FINISHED.done} END;
END $finish$;
`;
