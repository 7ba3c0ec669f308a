import { retryWhileBusy, sleep, toFailure } from './connection.js';
import type { SqliteConnection } from './connection.js';
import type { SqliteSettings } from '../sqlite-options.js';
import { perform } from './operations.js';
import type { Call, CallResponse, OperationName } from './operations.js';
import { bytesOf } from './pending-calls.js';

/** A batch takes no more calls when their bodies have this many bytes together. */
const MAX_BATCH_BYTES = 8 * 1024 ** 2;

type BatchSettings = Pick<SqliteSettings, 'busyTimeoutMs' | 'slowCommitMs'>;

/** Takes the next batch from a queue: at least one call, if the queue is not empty. */
export function takeBatch(queue: Call[], maxBatch: number): Call[] {
  let bytes = 0;
  let count = 0;
  while (count < Math.min(queue.length, maxBatch) && bytes < MAX_BATCH_BYTES) {
    bytes += bytesOf(queue[count]!);
    count += 1;
  }
  return queue.splice(0, count);
}

/**
 * Group commit: runs several writes in one transaction, so that one fsync serves all. If one write fails, the batch
 * runs all of them again in a new transaction, each in its own savepoint, so that the failure does not affect the
 * others. It uses no savepoints the first time, because SQLite copies each page that changes in a savepoint. If the
 * transaction itself fails, all calls fail.
 */
export function runBatch(
  connection: SqliteConnection,
  calls: readonly Call[],
  settings: BatchSettings,
): CallResponse[] {
  let oneFailed = false;
  const runOne = (call: Call): CallResponse => {
    try {
      return write(connection, call);
    } catch (error) {
      oneFailed = true;
      throw error;
    }
  };
  try {
    return inTransaction(connection, settings, () => calls.map(runOne));
  } catch (error) {
    if (oneFailed && calls.length > 1) return runInSavepoints(connection, calls, settings);
    return failed(calls, error);
  }
}

function runInSavepoints(
  connection: SqliteConnection,
  calls: readonly Call[],
  settings: BatchSettings,
): CallResponse[] {
  try {
    return inTransaction(connection, settings, () =>
      calls.map((call) => runInSavepoint(connection, call)),
    );
  } catch (error) {
    return failed(calls, error);
  }
}

function inTransaction<T>(
  connection: SqliteConnection,
  { busyTimeoutMs, slowCommitMs }: BatchSettings,
  work: () => T,
): T {
  try {
    retryWhileBusy(busyTimeoutMs, () => connection.run('BEGIN IMMEDIATE'));
    // No other process can change what the cache has until the end of the transaction.
    connection.resetCache(true);
    const result = work();
    connection.run('COMMIT');
    if (slowCommitMs > 0) sleep(slowCommitMs);
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

/** Runs a read, which needs no transaction. */
export function runRead(
  connection: SqliteConnection,
  call: Call,
  busyTimeoutMs: number,
): CallResponse {
  try {
    return retryWhileBusy(busyTimeoutMs, () => run(connection, call));
  } catch (error) {
    return { number: call.number, failure: toFailure(error) };
  }
}

function runInSavepoint(connection: SqliteConnection, call: Call): CallResponse {
  connection.run('SAVEPOINT payments_inbox_call');
  try {
    const response = write(connection, call);
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

/** Operations that change nothing that the connection caches. */
const KEEP_CACHE: ReadonlySet<string> = new Set([
  'attach',
  'cancel',
  'claim',
  'complete',
  'expect',
  'fail',
  'pollNow',
  'receive',
  'release',
  'settlePoll',
]);

/** Runs a write. One that may change cached values runs without the cache, and empties it for the writes after it. */
function write(connection: SqliteConnection, call: Call): CallResponse {
  if (KEEP_CACHE.has(call.name)) return run(connection, call);
  connection.resetCache(false);
  try {
    return run(connection, call);
  } finally {
    connection.resetCache(true);
  }
}

function run(connection: SqliteConnection, { number, name, request, times }: Call): CallResponse {
  return { number, value: perform(connection, name as OperationName, request, times) };
}
