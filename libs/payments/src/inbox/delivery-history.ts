import type { DeliveryAttempt } from './inbox-store.js';

/** How many attempts a history holds. */
export const HISTORY_LENGTH = 20;

const ERROR_LENGTH = 1000;

/**
 * One attempt as a database stores it, in a JSON array: its number, when it started in milliseconds since the epoch, how
 * many milliseconds it took, how it ended, and the error of one that failed.
 */
export type HistoryEntry = readonly [
  attempt: number,
  startedMs: number,
  tookMs: number,
  outcome: keyof typeof OUTCOMES,
  error?: string,
];

const OUTCOMES = { d: 'done', f: 'failed', l: 'lost' } as const;

/** A history as the contract has it, from what a database stores. */
export function toHistory(entries: readonly HistoryEntry[]): DeliveryAttempt[] {
  return entries.map(([attempt, startedMs, tookMs, outcome, error]) => ({
    attempt,
    startedAt: new Date(startedMs),
    endedAt: new Date(startedMs + Math.max(0, tookMs)),
    outcome: OUTCOMES[outcome],
    error: error ?? null,
  }));
}

/** An error cut to 1,000 characters, so that a history of 20 attempts is bounded too. */
export function boundedError(error: string): string {
  return error.length > ERROR_LENGTH ? `${error.slice(0, ERROR_LENGTH - 1)}…` : error;
}
