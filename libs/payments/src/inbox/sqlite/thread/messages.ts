import type { ThreadFailure } from '../sqlite-failure.js';
import type { SqliteSettings } from '../sqlite-options.js';
import type { StoredClock, Times } from '../store-clock.js';
import type { OperationName, RequestOf } from './operations.js';

/** What a worker thread gets as its `workerData` if it is to serve the database. */
export interface ThreadData {
  readonly sqliteInboxThread: SqliteSettings;
}

/** An operation on its way to the thread. */
export interface Call {
  readonly number: number;
  /** `window` requests a time in which the thread does not use the file; it ends with `windowClosed`. */
  readonly name: OperationName | 'window';
  readonly request: unknown;
  readonly times: Times;
}

/** Size of the bodies in a call. */
export function bytesOf({ name, request }: Pick<Call, 'name' | 'request'>): number {
  if (name !== 'receive') return 0;
  const { events } = request as RequestOf<'receive'>;
  return events.reduce((sum, { raw }) => sum + raw.byteLength, 0);
}

/** A message of the store to the thread. */
export type ToThread =
  | { readonly kind: 'calls'; readonly calls: readonly Call[] }
  | { readonly kind: 'windowClosed' }
  | { readonly kind: 'listen'; readonly on: boolean }
  | { readonly kind: 'close' };

/** The answer to a {@link Call}. */
export type Answer =
  | { readonly number: number; readonly value: unknown }
  | { readonly number: number; readonly failure: ThreadFailure };

/** The thread has opened the file. */
export interface Opened {
  readonly kind: 'opened';
  readonly sqliteVersion: string;
  readonly clock: StoredClock;
}

/** A message of the thread to the store. */
export type FromThread =
  | Opened
  | { readonly kind: 'failed'; readonly failure: ThreadFailure }
  | { readonly kind: 'answers'; readonly answers: readonly Answer[] }
  /** Another process wrote. */
  | { readonly kind: 'changed' }
  /** The clock of another process is ahead. */
  | { readonly kind: 'clock'; readonly clock: number }
  | { readonly kind: 'closed' };
