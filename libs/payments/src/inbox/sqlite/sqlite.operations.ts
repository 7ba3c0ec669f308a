import { activity, record } from './sqlite.activity.js';
import { claim } from './sqlite.claim.js';
import type { SqliteConnection } from './sqlite.connection.js';
import { nextDue } from './sqlite.due.js';
import { find } from './sqlite.find.js';
import { listSlice } from './sqlite.list.js';
import { pause } from './sqlite.pause.js';
import { prune } from './sqlite.prune.js';
import { receive } from './sqlite.receive.js';
import { redrive, skip } from './sqlite.redrive.js';
import { complete, extend, fail, release } from './sqlite.settle.js';
import { stats } from './sqlite.stats.js';

/**
 * A write whose commit fsyncs the write-ahead log, and with it every earlier commit in it: the log is one
 * file, written in the order of the commits and read back in it, up to the first frame that is not whole.
 * A commit that has left the log is in the database file, because a checkpoint syncs the log before it
 * copies from it, and the database file before the log may be written anew.
 */
function barrier(connection: SqliteConnection): void {
  connection.run('UPDATE payments_inbox_schema SET barrier = barrier + 1');
}

/** Operations that write: those that come together are committed together. */
export const WRITES = {
  barrier,
  claim,
  complete,
  extend,
  fail,
  pause,
  prune,
  receive,
  record,
  redrive,
  release,
  skip,
};

/** Operations that read: they wait for nobody. */
const READS = { activity, find, listSlice, nextDue, stats };

/** Every operation: what it is asked, by the clock of who asks, and what it answers. */
export const OPERATIONS = { ...WRITES, ...READS };

export type OperationName = keyof typeof OPERATIONS;

/** What an operation is asked. */
export type RequestOf<Name extends OperationName> =
  Parameters<(typeof OPERATIONS)[Name]> extends [SqliteConnection, infer Request, ...unknown[]]
    ? Request
    : null;

/** What an operation answers. */
export type AnswerOf<Name extends OperationName> = ReturnType<(typeof OPERATIONS)[Name]>;

/** Runs an operation by its name. */
export function perform(
  connection: SqliteConnection,
  name: OperationName,
  request: unknown,
  now: number,
): unknown {
  const operation = OPERATIONS[name] as (
    connection: SqliteConnection,
    request: unknown,
    now: number,
  ) => unknown;
  return operation(connection, request, now);
}
