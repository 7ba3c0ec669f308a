import type { OperationName } from '../sqlite-operations.js';
import type { SqliteSettings } from '../sqlite-options.js';
import type { StoredClock, ThreadFailure, Times } from './connection.js';

/** The `workerData` of a worker thread that serves the database. */
export interface ThreadData {
  readonly sqliteInboxThread: SqliteSettings;
}

/** An operation and its arguments. */
export interface Call {
  readonly name: OperationName;
  readonly args: readonly unknown[];
}

/** How a {@link Call} ended. */
export type Outcome = { readonly value: unknown } | { readonly failure: ThreadFailure };

/** How calls ended, in their order. */
export interface Outcomes {
  readonly outcomes: readonly Outcome[];
  /** Whether a delivery or a poll may have become due. */
  readonly wakes: boolean;
  /** The clock of another process, if it is far ahead of the clock of the calls. */
  readonly ahead: number | null;
}

/** A message of the store to the thread. */
export type ToThread =
  /** Runs one read, or writes in one transaction, at the time of this process. The number identifies the response. */
  | {
      readonly kind: 'run';
      readonly number: number;
      readonly calls: readonly Call[];
      readonly times: Times;
    }
  /** Whether the thread checks for writes of other processes. */
  | { readonly kind: 'listen'; readonly on: boolean }
  | { readonly kind: 'close' };

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
  /** `checkpoint`: the thread now makes a checkpoint, and then sends `ready`. */
  | ({ readonly kind: 'done'; readonly number: number; readonly checkpoint: boolean } & Outcomes)
  | { readonly kind: 'ready' }
  /** Another process wrote. */
  | { readonly kind: 'changed' };
