import type { OperationName } from '../sqlite-operations.js';
import type { SqliteSettings } from '../sqlite-options.js';
import type { StoredClock, ThreadFailure, Times } from './connection.js';

/** The `workerData` of a worker thread that serves the database. */
export interface ThreadData {
  readonly sqliteInboxThread: SqliteSettings;
}

/** An operation, its arguments, and the time of the process that requested it. */
export interface Call {
  /** Identifies the call in its response. */
  readonly number: number;
  /** `window` requests a time in which the thread does not use the file; the message `windowClosed` ends it. */
  readonly name: OperationName | 'window';
  readonly args: readonly unknown[];
  readonly times: Times;
}

/** A message of the store to the thread. */
export type ToThread =
  | { readonly kind: 'calls'; readonly calls: readonly Call[] }
  | { readonly kind: 'windowClosed' }
  /** Whether the thread checks for writes of other processes. */
  | { readonly kind: 'listen'; readonly on: boolean }
  | { readonly kind: 'close' };

/** The response to a {@link Call}. */
export type CallResponse =
  | {
      readonly number: number;
      readonly value: unknown;
      /** Whether a delivery or a poll may have become due. */
      readonly wakes: boolean;
    }
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
  /** The thread could not open the file, and ends. */
  | { readonly kind: 'failed'; readonly failure: ThreadFailure }
  | { readonly kind: 'responses'; readonly responses: readonly CallResponse[] }
  /** Another process wrote. */
  | { readonly kind: 'changed' }
  /** The clock of another process is ahead of the clock of this process. */
  | { readonly kind: 'clock'; readonly clock: number }
  | { readonly kind: 'closed' };

/** Size of the bodies in a call. */
export function bytesOf({ name, args }: Pick<Call, 'name' | 'args'>): number {
  if (name !== 'receive') return 0;
  return (args as [readonly { raw: Uint8Array }[]])[0].reduce(
    (sum, { raw }) => sum + raw.byteLength,
    0,
  );
}
