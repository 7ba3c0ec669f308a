import { HISTORY_LENGTH } from '../../delivery-history.js';

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
