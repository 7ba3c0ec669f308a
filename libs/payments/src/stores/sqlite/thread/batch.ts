import { retryWhileBusy, SqliteSql, toFailure, waitForLock } from './connection.js';
import type { SqliteConnection, Times } from './connection.js';
import { OPERATIONS } from '../sqlite-operations.js';
import type { Operation, OperationName } from '../sqlite-operations.js';
import { storedClock, sync } from './database-file.js';
import type { Call, Outcome, Outcomes } from './messages.js';

/** Runs one task after the other, because tasks may be async and transactions of one database must not overlap. */
export class Turns {
  #last: Promise<unknown> = Promise.resolve();

  take<T>(work: () => T | Promise<T>): Promise<T> {
    const result = this.#last.then(work);
    this.#last = result.catch(() => {});
    return result;
  }
}

/** Whether an operation runs in a transaction with other writes. */
export function isWrite(name: OperationName): boolean {
  return OPERATIONS[name][0] !== 'read';
}

export async function runRead(
  connection: SqliteConnection,
  call: Call,
  times: Times,
  busyTimeoutMs: number,
): Promise<Outcomes> {
  const sql = new SqliteSql(connection, times);
  const end = performance.now() + busyTimeoutMs;
  for (;;) {
    const outcome = await perform(sql, call).catch((error: unknown) =>
      waitForLock(error, end) ? undefined : { failure: toFailure(error) },
    );
    if (outcome !== undefined) return { outcomes: [outcome], wakes: false, ahead: null };
  }
}

/**
 * The milliseconds by which the stored clock may differ from the clock of the calls. If the stored clock is further
 * behind, a batch stores the clock of the calls. If the stored clock is further ahead, the thread sends it to the
 * store.
 */
const CLOCK_SLACK_MS = 500;

/**
 * Group commit: runs several writes in one transaction, so that one fsync is enough for all of them. If one write
 * fails, all of them run again in a new transaction, each in its own savepoint, so that the failure does not affect the
 * others. The first transaction has no savepoints, because SQLite copies each page that changes in a savepoint. If the
 * transaction itself fails, all calls fail.
 *
 * All processes of the database use the latest of their clocks. If the stored clock is ahead of the calls, another
 * process has a later clock, and the calls use that clock. If the stored clock is too far behind, the transaction
 * stores the clock of the calls.
 *
 * Operations may be async functions, but they await only promises that are already resolved. Therefore, the thread
 * reads no message before the end of the batch.
 */
export async function runBatch(
  connection: SqliteConnection,
  calls: readonly Call[],
  times: Times,
  busyTimeoutMs: number,
): Promise<Outcomes> {
  for (let runOne = write; ; runOne = writeInSavepoint) {
    let isRunning = false;
    try {
      retryWhileBusy(busyTimeoutMs, () => connection.run('BEGIN IMMEDIATE'));
      // Until the end of the transaction, no other process can change the values in the cache.
      connection.resetCache(true);
      const aheadMs = storedClock(connection).clock - times.clock;
      const clock = times.clock + Math.max(0, aheadMs);
      const sql = new SqliteSql(connection, { ...times, clock });
      const outcomes: Outcome[] = [];
      isRunning = true;
      for (const call of calls) outcomes.push(await runOne(sql, call));
      isRunning = false;
      // A batch of claims stores no clock, because most claims of an idle inbox find nothing, and the clock would cost
      // an fsync.
      const isFarBehind = aheadMs <= -CLOCK_SLACK_MS;
      if (isFarBehind && !calls.every(({ name }) => name.startsWith('claim'))) {
        sync(connection, sql.times);
      }
      connection.run('COMMIT');
      return { outcomes, wakes: sql.wakes, ahead: aheadMs > CLOCK_SLACK_MS ? clock : null };
    } catch (error) {
      connection.rollback();
      if (isRunning && calls.length > 1 && runOne === write) continue;
      const failure = toFailure(error);
      return { outcomes: calls.map(() => ({ failure })), wakes: false, ahead: null };
    } finally {
      connection.resetCache(false);
    }
  }
}

async function writeInSavepoint(sql: SqliteSql, call: Call): Promise<Outcome> {
  const { connection } = sql;
  connection.run('SAVEPOINT payments_inbox_call');
  try {
    const outcome = await write(sql, call);
    connection.run('RELEASE payments_inbox_call');
    return outcome;
  } catch (error) {
    try {
      connection.run('ROLLBACK TO payments_inbox_call');
      connection.run('RELEASE payments_inbox_call');
    } catch {
      // SQLite has rolled the whole transaction back, for example because the disk is full, so nothing of the batch is
      // stored.
      throw error;
    }
    return { failure: toFailure(error) };
  }
}

/**
 * Runs a write. A write that may change cached values runs without the cache, and empties the cache for the following
 * writes.
 */
function write(sql: SqliteSql, call: Call): Promise<Outcome> {
  if (OPERATIONS[call.name][0] === 'cached') return perform(sql, call);
  sql.connection.resetCache(false);
  return perform(sql, call).finally(() => sql.connection.resetCache(true));
}

async function perform(sql: SqliteSql, { name, args }: Call): Promise<Outcome> {
  const [, run] = OPERATIONS[name] as Operation;
  return { value: await run(sql, ...(args as never[])) };
}
