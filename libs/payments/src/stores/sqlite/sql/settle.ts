import { boundedError, HISTORY_LENGTH } from '../../../inbox/store/stored-event.js';
import type { HistoryEntry } from '../../../inbox/store/stored-event.js';
import type { FailedAttempt, Lease, SettleResult } from '../../../inbox/store/inbox-store.js';
import type { SqliteConnection } from '../thread/connection.js';
import type { SqliteSql } from '../thread/connection.js';
import { FREED_QUEUE, releaseNext } from './ordering.js';
import { toStored } from '../../sql/sql-connection.js';

/** The fields of a lease that identify it. */
export type LeaseName = Pick<Lease, 'seq' | 'handler' | 'token'>;

export function complete(sql: SqliteSql, lease: LeaseName): SettleResult {
  return settle(sql, lease, 'done', 'finished_at = ?, crashes = 0', [sql.times.wall]);
}

export function fail(sql: SqliteSql, lease: LeaseName, failure: FailedAttempt): SettleResult {
  const { wall, clock } = sql.times;
  const { retryInMs } = failure;
  const row = findRunning(sql.connection, lease);
  if (row === undefined) return LOST;
  const error = toStored(boundedError(failure.error));
  const set = 'last_error = ?, frames = ?, failed_at = ?, history = ?, crashes = 0';
  const frames = failure.frames ? toStored(failure.frames) : null;
  const failed = [error, frames, wall, withAttempt(row, wall, 'f', error)];
  if (retryInMs === null) {
    return settle(sql, lease, 'dead', `${set}, queue = 'dead', finished_at = ?`, [...failed, wall]);
  }
  const dueAt = clock + Math.round(retryInMs);
  return settle(sql, lease, 'pending', `${set}, queue = 'due', due_at = ?`, [...failed, dueAt]);
}

export function release(sql: SqliteSql, lease: LeaseName, dueInMs = 0): SettleResult {
  const set = `queue = ${FREED_QUEUE}, attempts = attempts - 1, due_at = ?`;
  return settle(sql, lease, 'pending', set, [sql.times.clock + Math.round(dueInMs)]);
}

/** SQL: selects a delivery only if the delivery runs under the token of the lease. The condition compares no clock. */
const FENCE = "event = ? AND handler = ? AND token = ? AND state = 'running'";

const LOST: SettleResult = { settled: false, nextDue: false };

function settle(
  sql: SqliteSql,
  { seq, handler, token }: LeaseName,
  state: 'done' | 'dead' | 'pending',
  set: string,
  values: readonly unknown[],
): SettleResult {
  const changed = sql.connection.run(
    `UPDATE payments_inbox_delivery SET state = '${state}', ${set}, worker = NULL WHERE ${FENCE}`,
    [...values, seq, handler, token],
  );
  if (changed === 0) return LOST;
  const nextDue = releaseNext(sql.connection, seq, handler);
  sql.wakes ||= nextDue || state === 'pending';
  return { settled: true, nextDue };
}

/** The columns of a running delivery from which a history entry is made. */
export interface RunningRow {
  readonly attempts: number;
  readonly started_at: number;
  readonly history: string | null;
}

export function findRunning(
  connection: SqliteConnection,
  { seq, handler, token }: LeaseName,
): RunningRow | undefined {
  return connection.get<RunningRow>(
    `SELECT attempts, started_at, history FROM payments_inbox_delivery WHERE ${FENCE}`,
    [seq, handler, token],
  );
}

export function withAttempt(
  { attempts, started_at, history }: RunningRow,
  endedAt: number,
  ...outcome: [HistoryEntry[3], error?: string]
): string {
  const attempt = [attempts, started_at, Math.max(0, endedAt - started_at), ...outcome];
  return JSON.stringify(
    [...(JSON.parse(history ?? '[]') as unknown[]), attempt].slice(-HISTORY_LENGTH),
  );
}
