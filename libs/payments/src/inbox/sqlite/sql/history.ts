import { HISTORY_LENGTH } from '../../delivery-history.js';
import type { HistoryEntry } from '../../delivery-history.js';

/** The history of a delivery, as stored, with one more attempt; the oldest of too many are left out. */
export function withAttempt(
  history: string,
  { attempts, started_at }: { readonly attempts: number; readonly started_at: number },
  endedAt: number,
  outcome: HistoryEntry[3],
  error?: string,
): string {
  const entries = JSON.parse(history) as HistoryEntry[];
  const tookMs = Math.max(0, endedAt - started_at);
  entries.push([
    attempts,
    started_at,
    tookMs,
    outcome,
    ...((error === undefined ? [] : [error]) as [string?]),
  ]);
  return JSON.stringify(entries.slice(-HISTORY_LENGTH));
}
