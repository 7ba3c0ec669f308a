import { toFailure } from '../sqlite-failure.js';
import type { SqliteSettings } from '../sqlite-options.js';
import { retryWhileBusy, sleep } from './connection.js';
import type { SqliteConnection } from './connection.js';
import { bytesOf } from './messages.js';
import type { Answer, Call } from './messages.js';
import { perform } from './operations.js';
import type { OperationName } from './operations.js';

/** Bodies in one transaction, in bytes, after which no more operations join it. */
const MAX_BATCH_BYTES = 8 * 1024 ** 2;

type BatchSettings = Pick<SqliteSettings, 'busyTimeoutMs' | 'slowCommitMs'>;

/** Takes the next batch from a queue: at least one call, if there is one. */
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
 * Group commit: runs several writes in one transaction, so that one fsync serves all. If one of them fails, all are
 * done again, each in its own savepoint, so that the failure of one does not affect the others; not at first, because
 * for a savepoint SQLite keeps a copy of each page that it changes. If the transaction itself fails, all of them do.
 */
export function runBatch(
  connection: SqliteConnection,
  calls: readonly Call[],
  settings: BatchSettings,
): Answer[] {
  let oneFailed = false;
  const runOne = (call: Call): Answer => {
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
    if (oneFailed && calls.length > 1) return runApart(connection, calls, settings);
    return failed(calls, error);
  }
}

function runApart(
  connection: SqliteConnection,
  calls: readonly Call[],
  settings: BatchSettings,
): Answer[] {
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
    // No other process can change them until the end of the transaction.
    connection.keepFacts(true);
    const result = work();
    connection.run('COMMIT');
    if (slowCommitMs > 0) sleep(slowCommitMs);
    return result;
  } catch (error) {
    connection.rollback();
    throw error;
  } finally {
    connection.keepFacts(false);
  }
}

function failed(calls: readonly Call[], error: unknown): Answer[] {
  const failure = toFailure(error);
  return calls.map(({ number }) => ({ number, failure }));
}

/** Runs a read, which needs no transaction. */
export function runRead(connection: SqliteConnection, call: Call, busyTimeoutMs: number): Answer {
  try {
    return retryWhileBusy(busyTimeoutMs, () => run(connection, call));
  } catch (error) {
    return { number: call.number, failure: toFailure(error) };
  }
}

function runInSavepoint(connection: SqliteConnection, call: Call): Answer {
  connection.run('SAVEPOINT payments_inbox_call');
  try {
    const answer = write(connection, call);
    connection.run('RELEASE payments_inbox_call');
    return answer;
  } catch (error) {
    try {
      connection.run('ROLLBACK TO payments_inbox_call');
      connection.run('RELEASE payments_inbox_call');
    } catch {
      // SQLite has rolled the whole transaction back, for example after a full disk: nothing of the batch is stored.
      throw error;
    }
    return { number: call.number, failure: toFailure(error) };
  }
}

/** Operations that change no facts of the connection. */
const KEEP_FACTS: ReadonlySet<string> = new Set([
  'claim',
  'complete',
  'fail',
  'receive',
  'release',
]);

/** An operation that changes facts reads them as they are, before and after its changes. */
function write(connection: SqliteConnection, call: Call): Answer {
  if (KEEP_FACTS.has(call.name)) return run(connection, call);
  connection.keepFacts(false);
  try {
    return run(connection, call);
  } finally {
    connection.keepFacts(true);
  }
}

function run(connection: SqliteConnection, { number, name, request, times }: Call): Answer {
  return { number, value: perform(connection, name as OperationName, request, times) };
}
