import { retryWhileBusy, toFailure, waitForLock } from './connection.js';
import type { SqliteConnection } from './connection.js';
import { OPERATIONS } from '../sqlite-operations.js';
import type { Operation, OperationName } from '../sqlite-operations.js';
import { storedClock } from './database-file.js';
import { bytesOf } from './messages.js';
import type { Call, CallResponse } from './messages.js';
import { SqliteSql } from './sqlite-sql.js';

/** A batch takes no more calls when their bodies have this many bytes together. */
const MAX_BATCH_BYTES = 8 * 1024 ** 2;

/** A batch has at most this many calls: larger transactions are not faster, and delay the responses to their first calls. */
const MAX_BATCH = 256;

/** Takes the next batch from a queue: at least one call, if the queue is not empty. */
export function takeBatch<QueuedCall extends Call>(queue: QueuedCall[]): QueuedCall[] {
  let bytes = 0;
  let count = 0;
  while (count < Math.min(queue.length, MAX_BATCH) && bytes < MAX_BATCH_BYTES) {
    bytes += bytesOf(queue[count]!);
    count += 1;
  }
  return queue.splice(0, count);
}

/**
 * By how many milliseconds the stored clock may be behind before a batch stores a later one, or ahead before the store
 * gets it.
 */
const CLOCK_SLACK_MS = 500;

/** Number of a call that stores the clock. It has no response. */
const OWN_CALL = 0;

/**
 * Runs a batch, and makes all processes of the database use the latest of their clocks. If the stored clock is ahead of the
 * calls, another process has a later clock, and the calls use it; `ahead` is that clock if it is far ahead. If the stored
 * clock is too far behind, the batch stores the clock of the calls.
 */
export async function runAtLatestClock(
  connection: SqliteConnection,
  calls: readonly Call[],
  busyTimeoutMs: number,
): Promise<{ readonly responses: readonly CallResponse[]; readonly ahead: number | null }> {
  const latest = calls.map(({ times }) => times).reduce((a, b) => (b.clock > a.clock ? b : a));
  const aheadMs = readClock(connection, latest.clock) - latest.clock;
  const ahead = aheadMs > CLOCK_SLACK_MS ? latest.clock + aheadMs : null;
  const timed =
    aheadMs <= 0
      ? calls
      : calls.map((call) => ({
          ...call,
          times: { ...call.times, clock: call.times.clock + aheadMs },
        }));
  // A batch of claims stores no clock: most claims of an idle inbox find nothing, and the clock would cost an fsync.
  const isStored = aheadMs > -CLOCK_SLACK_MS || calls.every(({ name }) => name.startsWith('claim'));
  const own: Call = { number: OWN_CALL, name: 'sync', args: [], times: latest };
  const responses = await runBatch(connection, isStored ? timed : [...timed, own], busyTimeoutMs);
  return { responses: responses.filter(({ number }) => number !== OWN_CALL), ahead };
}

function readClock(connection: SqliteConnection, fallback: number): number {
  try {
    return storedClock(connection).clock;
  } catch {
    // The batch will fail for the same reason, and its responses report the error.
    return fallback;
  }
}

/**
 * Group commit: runs several writes in one transaction, so that one fsync serves all. If one write fails, the batch
 * runs all of them again in a new transaction, each in its own savepoint, so that the failure does not affect the
 * others. It uses no savepoints the first time, because SQLite copies each page that changes in a savepoint. If the
 * transaction itself fails, all calls fail.
 *
 * Operations may be async functions, but they await only what is resolved already: no other message is read before the end of
 * the batch.
 */
export async function runBatch(
  connection: SqliteConnection,
  calls: readonly Call[],
  busyTimeoutMs: number,
): Promise<CallResponse[]> {
  let isRunning = false;
  try {
    return await inTransaction(connection, busyTimeoutMs, async () => {
      isRunning = true;
      const responses = await oneByOne(calls, (call) => write(connection, call));
      isRunning = false;
      return responses;
    });
  } catch (error) {
    if (isRunning && calls.length > 1) return runInSavepoints(connection, calls, busyTimeoutMs);
    return failed(calls, error);
  }
}

async function runInSavepoints(
  connection: SqliteConnection,
  calls: readonly Call[],
  busyTimeoutMs: number,
): Promise<CallResponse[]> {
  try {
    return await inTransaction(connection, busyTimeoutMs, () =>
      oneByOne(calls, (call) => runInSavepoint(connection, call)),
    );
  } catch (error) {
    return failed(calls, error);
  }
}

async function oneByOne(
  calls: readonly Call[],
  run: (call: Call) => Promise<CallResponse>,
): Promise<CallResponse[]> {
  const responses: CallResponse[] = [];
  for (const call of calls) responses.push(await run(call));
  return responses;
}

async function inTransaction<T>(
  connection: SqliteConnection,
  busyTimeoutMs: number,
  work: () => Promise<T>,
): Promise<T> {
  try {
    retryWhileBusy(busyTimeoutMs, () => connection.run('BEGIN IMMEDIATE'));
    // No other process can change what the cache has until the end of the transaction.
    connection.resetCache(true);
    const result = await work();
    connection.run('COMMIT');
    return result;
  } catch (error) {
    connection.rollback();
    throw error;
  } finally {
    connection.resetCache(false);
  }
}

function failed(calls: readonly Call[], error: unknown): CallResponse[] {
  const failure = toFailure(error);
  return calls.map(({ number }) => ({ number, failure }));
}

/** Runs an operation that needs no transaction, or begins transactions of its own. */
export async function runOutside(
  connection: SqliteConnection,
  call: Call,
  busyTimeoutMs: number,
  begin: NonNullable<ConstructorParameters<typeof SqliteSql>[2]>,
): Promise<CallResponse> {
  const end = performance.now() + busyTimeoutMs;
  try {
    for (;;) {
      try {
        return await perform(connection, call, ruleOf(call) === 'sliced' ? begin : undefined);
      } catch (error) {
        waitForLock(error, end);
      }
    }
  } catch (error) {
    return { number: call.number, failure: toFailure(error) };
  }
}

async function runInSavepoint(connection: SqliteConnection, call: Call): Promise<CallResponse> {
  connection.run('SAVEPOINT payments_inbox_call');
  try {
    const response = await write(connection, call);
    connection.run('RELEASE payments_inbox_call');
    return response;
  } catch (error) {
    try {
      connection.run('ROLLBACK TO payments_inbox_call');
      connection.run('RELEASE payments_inbox_call');
    } catch {
      // SQLite has rolled the whole transaction back, for example because the disk is full: nothing of the batch is
      // stored.
      throw error;
    }
    return { number: call.number, failure: toFailure(error) };
  }
}

/** Runs a write. One that may change cached values runs without the cache, and empties it for the writes after it. */
function write(connection: SqliteConnection, call: Call): Promise<CallResponse> {
  if (ruleOf(call) === 'cached') return perform(connection, call);
  connection.resetCache(false);
  return perform(connection, call).finally(() => connection.resetCache(true));
}

/** How the operation of a call runs. */
export function ruleOf({ name }: Call): (typeof OPERATIONS)[OperationName][0] {
  return OPERATIONS[name as OperationName][0];
}

async function perform(
  connection: SqliteConnection,
  { number, name, args, times }: Call,
  begin?: ConstructorParameters<typeof SqliteSql>[2],
): Promise<CallResponse> {
  const sql = new SqliteSql(connection, times, begin);
  const [, run] = OPERATIONS[name as OperationName] as Operation;
  const value = await run(sql, ...(args as never[]));
  return { number, value, wakes: sql.wakes };
}
