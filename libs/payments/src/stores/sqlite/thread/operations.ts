import { activitySlice } from '../sql/activity.js';
import { catalog, forgetHandler, pause } from '../sql/catalog.js';
import { claim, claimSuspect, nextDue } from '../sql/claim.js';
import {
  attach,
  cancel,
  claimPolls,
  countExpectations,
  endRequest,
  expect,
  findExpectation,
  listExpectations,
  nextPollInMs,
  pollNow,
  releasePolls,
  settlePoll,
  startRequest,
} from '../sql/expectations.js';
import { newerHandled } from '../sql/ordering.js';
import { prune } from '../sql/prune.js';
import { receive } from '../sql/receive.js';
import { redrive } from '../sql/redrive.js';
import { find, listSlice } from '../sql/search.js';
import { eventsFound, failuresSlice } from '../sql/text-search.js';
import { complete, fail, release, skip } from '../sql/settle.js';
import { stats } from '../sql/stats.js';
import { heartbeat, register, retire } from '../sql/workers.js';
import type { SqliteConnection, StoredClock, ThreadFailure, Times } from './connection.js';
import type { SqliteSettings } from '../sqlite-options.js';
import { sync } from './database-file.js';

/** Operations that write. The thread commits those that arrive together in one transaction. */
export const WRITES = {
  attach,
  cancel,
  claim,
  claimPolls,
  claimSuspect,
  complete,
  endRequest,
  expect,
  fail,
  forgetHandler,
  heartbeat,
  pause,
  pollNow,
  prune,
  receive,
  redrive,
  register,
  release,
  releasePolls,
  retire,
  settlePoll,
  skip,
  startRequest,
  sync,
};

/** Operations that only read. The thread runs them at once, because they do not need the lock of the writer. */
const READS = {
  activitySlice,
  catalog,
  countExpectations,
  eventsFound,
  failuresSlice,
  find,
  findExpectation,
  listExpectations,
  listSlice,
  newerHandled,
  nextDue,
  nextPollInMs,
  stats,
};

/** All operations, by name. Each takes a connection, a request and the time of the process that made the request. */
export const OPERATIONS = { ...WRITES, ...READS };

export type OperationName = keyof typeof OPERATIONS;

/** The request of an operation. */
export type RequestOf<Name extends OperationName> =
  Parameters<(typeof OPERATIONS)[Name]> extends [SqliteConnection, infer Request, ...unknown[]]
    ? Request
    : null;

/** The response of an operation. */
export type ResponseOf<Name extends OperationName> = ReturnType<(typeof OPERATIONS)[Name]>;

/** Runs the operation of that name. */
export function perform(
  connection: SqliteConnection,
  name: OperationName,
  request: unknown,
  times: Times,
): unknown {
  const operation = OPERATIONS[name] as (
    connection: SqliteConnection,
    request: unknown,
    times: Times,
  ) => unknown;
  return operation(connection, request, times);
}

/** The `workerData` of a worker thread that serves the database. */
export interface ThreadData {
  readonly sqliteInboxThread: SqliteSettings;
}

/** A request for the thread to run an operation. */
export interface Call {
  /** Identifies the call in its response. */
  readonly number: number;
  /** `window` requests a time in which the thread does not use the file; the message `windowClosed` ends it. */
  readonly name: OperationName | 'window';
  readonly request: unknown;
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
  /** The thread could not open the file, and ends. */
  | { readonly kind: 'failed'; readonly failure: ThreadFailure }
  | { readonly kind: 'responses'; readonly responses: readonly CallResponse[] }
  /** Another process wrote. */
  | { readonly kind: 'changed' }
  /** The clock of another process is ahead of the clock of this process. */
  | { readonly kind: 'clock'; readonly clock: number }
  | { readonly kind: 'closed' };
