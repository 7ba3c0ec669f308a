import { types } from 'node:util';
import type { IncomingEvent, Lease } from '../../../inbox/store/inbox-store.js';
import type { OperationName } from '../sqlite-operations.js';
import type { SqliteSettings } from '../sqlite-options.js';
import type { StoredClock, ThreadFailure, Times } from './connection.js';

/** The `workerData` of a worker thread that serves the database. */
export interface ThreadData {
  readonly sqliteInboxThread: SqliteSettings;
}

export interface Call {
  readonly name: OperationName;
  readonly args: readonly unknown[];
}

export type Outcome = { readonly value: unknown } | { readonly failure: ThreadFailure };

/** The outcomes of calls, in the order of the calls. */
export interface Outcomes {
  readonly outcomes: readonly Outcome[];
  /** Whether a delivery or a poll may have become due. */
  readonly wakes: boolean;
  /** The clock of another process, if it is far ahead of the clock of the calls. */
  readonly ahead: number | null;
}

export type ToThread =
  /** Runs one read, or writes in one transaction, at the time of this process. The number identifies the response. */
  | {
      readonly kind: 'run';
      readonly number: number;
      readonly calls: readonly Call[];
      readonly times: Times;
    }
  | { readonly kind: 'close' };

/** The thread has opened the file. `warnings` contains the warnings to log. */
export interface Opened {
  readonly kind: 'opened';
  readonly warnings: readonly string[];
  readonly clock: StoredClock;
}

export type FromThread =
  | Opened
  /** The thread could not open the file, and ends. */
  | { readonly kind: 'failed'; readonly failure: ThreadFailure }
  /** `checkpoint`: the thread now makes a checkpoint, and then sends `ready`. */
  | ({ readonly kind: 'done'; readonly number: number; readonly checkpoint: boolean } & Outcomes)
  | { readonly kind: 'ready' }
  /** Another process wrote to the file. */
  | { readonly kind: 'changed' };

// Structured clone copies the arguments and results of each call. To avoid copies of bodies, only the arguments of a
// receive and the result of a claim contain the body of an event.

/**
 * Returns an argument as the store sends it. Bodies of events are copied, and leases have only the fields that identify
 * them.
 */
export function toSent(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(toSent);
  if (typeof value !== 'object' || value === null) return value;
  const { raw, event, token, seq, handler } = value as Partial<
    IncomingEvent & Lease & { event: unknown }
  >;
  if (token !== undefined) return { seq, handler, token };
  if (event) return { ...value, event: toSent(event) };
  // Structured clone would copy the whole pool of a pooled buffer.
  return raw === undefined ? value : { ...value, raw: new Uint8Array(raw) };
}

/**
 * Copies a result that `postMessage` created in Node's own realm. In a test runner with its own realms, such as Jest,
 * these objects would not equal the objects of the application. Bytes become a `Buffer` without a copy.
 */
export function adopt<T>(value: T): T;
export function adopt(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return Array.from(value, adopt);
  if (types.isDate(value)) return new Date(value);
  if (types.isUint8Array(value)) {
    return Buffer.from(value.buffer, value.byteOffset, value.byteLength);
  }
  const copy: Record<string, unknown> = { ...value };
  for (const name of Object.keys(copy)) copy[name] = adopt(copy[name]);
  return copy;
}
