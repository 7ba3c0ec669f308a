import type { Lease } from '../../store/inbox-store.js';
import { BY_INDEX, hidden, NOW } from './planner-settings.js';
import { appended } from './settle.js';
import { toStored } from './stored-text.js';

/** Results of the function `finish`. Any other number: the lease was lost. */
export const DONE = 1;
export const DONE_AND_NEXT_DUE = 2;
/** The isolation level hides held deliveries from the transaction, so another has to release them. */
export const DONE_AND_RELEASE = 3;

/** Its parameters. */
export function leaseValues({ seq, handler, token }: Lease): string[] {
  return [String(seq), toStored(handler), String(token)];
}

/** Its result. */
export function finishedOf(
  answer: readonly unknown[] | { readonly rows: readonly unknown[] },
): number {
  const [row] = 'rows' in answer ? answer.rows : answer;
  // By position: a query builder may have renamed the column.
  const [finished] =
    typeof row === 'object' && row !== null ? (Object.values(row) as unknown[]) : [];
  if (finished === undefined) {
    throw new TypeError(
      'The "query" of "runTransaction" must resolve with the rows of its statement.',
    );
  }
  return Number(finished);
}

export function isDone(finished: number): boolean {
  return finished === DONE || finished === DONE_AND_NEXT_DUE || finished === DONE_AND_RELEASE;
}

/** The last statement of the transaction, so that a long work locks no row of the inbox. */
export const finishFunction = (schema: string): string => `
CREATE FUNCTION ${schema}.finish(p_event bigint, p_handler text, p_token bigint) RETURNS integer
LANGUAGE plpgsql VOLATILE ${BY_INDEX}
AS $finish$
DECLARE
  v_now CONSTANT timestamptz := ${NOW};
  v_ordering uuid;
BEGIN
  UPDATE ${schema}.delivery d
     SET state = 'done', worker = NULL, alone = false, crashes = 0, finished_at = v_now, ended_at = v_now,
         history = ${appended('v_now', `'d'`)}
   WHERE d.event = p_event AND d.handler = p_handler AND d.token = p_token AND ${hidden(`d.state = 'running'`)}
  RETURNING d.ordering INTO v_ordering;
  IF NOT FOUND THEN RETURN 0; END IF;
  IF v_ordering IS NULL THEN RETURN ${DONE}; END IF;
  IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
    RETURN ${DONE_AND_RELEASE};
  END IF;
  PERFORM FROM ${schema}.release_next(ARRAY[v_ordering], ARRAY[p_handler]);
  RETURN CASE WHEN FOUND THEN ${DONE_AND_NEXT_DUE} ELSE ${DONE} END;
END $finish$;

CREATE FUNCTION ${schema}.release_after(p_event bigint, p_handler text) RETURNS boolean
LANGUAGE plpgsql VOLATILE ${BY_INDEX}
AS $after$
BEGIN
  PERFORM FROM ${schema}.delivery d CROSS JOIN LATERAL ${schema}.release_next(ARRAY[d.ordering], ARRAY[d.handler])
    WHERE d.event = p_event AND d.handler = p_handler;
  RETURN FOUND;
END $after$;
`;
