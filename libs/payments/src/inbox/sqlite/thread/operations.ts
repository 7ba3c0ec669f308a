import { activity, summarize } from '../sql/activity.js';
import { catalog, forgetHandler, pause } from '../sql/catalog.js';
import { claim, claimSuspect, nextDue } from '../sql/claim.js';
import { prune } from '../sql/prune.js';
import { receive } from '../sql/receive.js';
import { redrive } from '../sql/redrive.js';
import { find, listSlice } from '../sql/search.js';
import { complete, fail, release, skip } from '../sql/settle.js';
import { stats } from '../sql/stats.js';
import { sync } from './write-ahead-log.js';
import { heartbeat, register, retire } from '../sql/workers.js';
import type { Times } from '../store-clock.js';
import type { SqliteConnection } from './connection.js';

/** Operations that write: those that arrive together are committed together. */
export const WRITES = {
  claim,
  claimSuspect,
  complete,
  fail,
  forgetHandler,
  heartbeat,
  pause,
  prune,
  receive,
  redrive,
  register,
  release,
  retire,
  skip,
  summarize,
  sync,
};

/** Operations that only read. They need no lock of a writer, so they run at once. */
const READS = { activity, catalog, find, listSlice, nextDue, stats };

/** Every operation, by name. Its parameters are the connection, the request and the time of the process that sent it. */
export const OPERATIONS = { ...WRITES, ...READS };

export type OperationName = keyof typeof OPERATIONS;

/** The request of an operation. */
export type RequestOf<Name extends OperationName> =
  Parameters<(typeof OPERATIONS)[Name]> extends [SqliteConnection, infer Request, ...unknown[]]
    ? Request
    : null;

/** The answer of an operation. */
export type AnswerOf<Name extends OperationName> = ReturnType<(typeof OPERATIONS)[Name]>;

/** Runs an operation by its name. */
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
