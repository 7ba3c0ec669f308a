import { HISTORY_LENGTH } from '../delivery-history.js';
import type { HistoryEntry } from '../delivery-history.js';

/**
 * An assignment that adds to a delivery's history how its attempt ended, and lets go of the oldest. `ended` and
 * `error` are SQL; a process of the version before has left no start.
 */
export function appended(ended: string, outcome: HistoryEntry[3], error?: string): string {
  const started = `coalesce(started_at, ${ended})`;
  const entry = ['attempts', started, `${ended} - ${started}`, `'${outcome}'`, error ?? []].flat();
  const kept = `iif(json_array_length(history) >= ${HISTORY_LENGTH}, json_remove(history, '$[0]'), history)`;
  return `json_insert(${kept}, '$[#]', json_array(${entry.join(', ')}))`;
}
