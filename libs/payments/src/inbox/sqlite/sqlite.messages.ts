import type { Failure } from './sqlite.failure.js';
import type { OperationName } from './sqlite.operations.js';
import type { SqliteSettings } from './sqlite.options.js';

/** What a worker gets as its `workerData` if it is to serve the database. */
export interface ThreadData {
  readonly sqliteInboxThread: SqliteSettings;
}

/** An operation on its way to the thread. */
export interface Call {
  readonly number: number;
  /** `window` asks for a moment in which the thread leaves the file alone; it ends with `windowClosed`. */
  readonly name: OperationName | 'window';
  readonly request: unknown;
  /** The time, by the clock of who asks. */
  readonly now: number;
}

/** What the store tells the thread. */
export type ToThread =
  | { readonly kind: 'calls'; readonly calls: readonly Call[] }
  | { readonly kind: 'windowClosed' }
  | { readonly kind: 'listen'; readonly on: boolean }
  | { readonly kind: 'close' };

/** The answer to a {@link Call}. */
export type Answer =
  | { readonly number: number; readonly value: unknown }
  | { readonly number: number; readonly failure: Failure };

/** What the thread tells the store. */
export type FromThread =
  | { readonly kind: 'opened'; readonly sqliteVersion: string }
  | { readonly kind: 'failed'; readonly failure: Failure }
  | { readonly kind: 'answers'; readonly answers: readonly Answer[] }
  | { readonly kind: 'changed' }
  | { readonly kind: 'closed' };
