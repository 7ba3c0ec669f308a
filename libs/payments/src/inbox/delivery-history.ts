import type { DeliveryAttempt } from './inbox-store.js';

/** How many attempts a history holds. */
export const HISTORY_LENGTH = 20;

const ERROR_LENGTH = 1000;

/**
 * One attempt in a database, whose JSON is a history: when it started, in milliseconds since the epoch, how many
 * it took, how it ended, and the error of one that failed.
 */
export type HistoryEntry = readonly [
  attempt: number,
  startedMs: number,
  tookMs: number,
  outcome: keyof typeof OUTCOMES,
  error?: string,
];

const OUTCOMES = { d: 'done', f: 'failed', l: 'lost' } as const;

/** A history as a database keeps it, as the contract shows it. */
export function toHistory(entries: readonly HistoryEntry[]): DeliveryAttempt[] {
  return entries.map(([attempt, startedMs, tookMs, outcome, error]) => ({
    attempt,
    startedAt: new Date(startedMs),
    endedAt: new Date(startedMs + Math.max(0, tookMs)),
    outcome: OUTCOMES[outcome],
    error: error ?? null,
  }));
}

/** What is kept of an error, so that 20 of them are bounded too. */
export function boundedError(error: string): string {
  return error.length > ERROR_LENGTH ? `${error.slice(0, ERROR_LENGTH - 1)}…` : error;
}
