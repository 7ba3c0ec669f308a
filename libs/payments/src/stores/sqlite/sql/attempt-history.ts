import { HISTORY_LENGTH } from '../../../inbox/store/stored-event.js';
import type { HistoryEntry } from '../../../inbox/store/stored-event.js';

/** Adds an attempt to a history, and removes the oldest if there are more than {@link HISTORY_LENGTH}. */
export function withAttempt(
  row: { readonly attempts: number; readonly started_at: number; readonly history: string },
  endedAt: number,
  outcome: HistoryEntry[3],
  error?: string,
): string {
  const { attempts, started_at, history } = row;
  const tookMs = Math.max(0, endedAt - started_at);
  const attempt = [attempts, started_at, tookMs, outcome, ...(error === undefined ? [] : [error])];
  return JSON.stringify([...(JSON.parse(history) as unknown[]), attempt].slice(-HISTORY_LENGTH));
}
