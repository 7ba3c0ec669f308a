import { hash } from 'node:crypto';
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

/**
 * A hash of texts. With 16 bytes it is much shorter than most texts, so that its indexes have far fewer pages; two
 * texts have the same hash by chance only once in 2^128. JSON escapes the quotes that separate the texts, so that two
 * different lists of texts never have the same hash input.
 */
export function hashOf(...texts: readonly string[]): Uint8Array {
  return hash('sha256', JSON.stringify(texts), 'buffer').subarray(0, 16);
}

/**
 * The hash of a company and an ordering key. Deliveries of one handler with the same hash never run at the same time.
 */
export function orderingOf(company: string, orderingKey: string | null): Uint8Array | null {
  return orderingKey === null ? null : hashOf(company, orderingKey);
}

/** The same bytes as a `Buffer`, without a copy. */
export function toBuffer({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength);
}
