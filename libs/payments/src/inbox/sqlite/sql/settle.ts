import { boundedError } from '../../delivery-history.js';
import type { Lease, Settlement } from '../../inbox-store.js';
import type { Times } from '../store-clock.js';
import type { SqliteConnection } from '../thread/connection.js';
import { withAttempt } from './history.js';
import { releaseNext } from './lanes.js';
import { toReadable } from './text.js';

/** What the fence compares. */
export type LeaseName = Pick<Lease, 'seq' | 'handler' | 'token'>;

interface RunningRow {
  readonly lane: string | null;
  readonly attempts: number;
  readonly started_at: number;
  readonly history: string;
}

/** Marks a delivery done. */
export function complete(
  connection: SqliteConnection,
  { lease }: { readonly lease: LeaseName },
  { wall }: Times,
): Settlement {
  return settle(connection, lease, (row) =>
    change(connection, lease, "state = 'done', finished_at = ?, crashes = 0, history = ?", [
      wall,
      withAttempt(row.history, row, wall, 'd'),
    ]),
  );
}

/** Records a failure: due again in `retryInMs`, or dead. */
export function fail(
  connection: SqliteConnection,
  request: {
    readonly lease: LeaseName;
    readonly error: string;
    readonly retryInMs: number | null;
  },
  { wall, clock }: Times,
): Settlement {
  const { lease, retryInMs } = request;
  const error = toReadable(boundedError(request.error));
  return settle(connection, lease, (row) => {
    const failed = [error, wall, withAttempt(row.history, row, wall, 'f', error)];
    const set = 'last_error = ?, failed_at = ?, history = ?, crashes = 0';
    if (retryInMs === null) {
      change(connection, lease, `${set}, state = 'dead', finished_at = ?`, [...failed, wall]);
    } else {
      const dueAt = clock + Math.round(retryInMs);
      change(connection, lease, `${set}, state = 'pending', due_at = ?`, [...failed, dueAt]);
    }
  });
}

/** Gives a delivery back, due in `dueInMs`, without the attempt being charged. */
export function release(
  connection: SqliteConnection,
  { lease, dueInMs }: { readonly lease: LeaseName; readonly dueInMs: number },
  { clock }: Times,
): Settlement {
  return settle(connection, lease, () =>
    change(connection, lease, "state = 'pending', attempts = attempts - 1, due_at = ?", [
      clock + Math.round(dueInMs),
    ]),
  );
}

/** Whether the lease is held. */
export function isHeld(connection: SqliteConnection, lease: LeaseName): boolean {
  return findRunning(connection, lease) !== undefined;
}

/** The fence: a delivery that is not running, or runs under another token, is not changed. No clock is compared. */
function settle(
  connection: SqliteConnection,
  lease: LeaseName,
  act: (row: RunningRow) => void,
): Settlement {
  const row = findRunning(connection, lease);
  if (row === undefined) return { settled: false, nextDue: false };
  act(row);
  return { settled: true, nextDue: releaseNext(connection, lease.handler, row.lane) };
}

function findRunning(
  connection: SqliteConnection,
  { seq, handler, token }: LeaseName,
): RunningRow | undefined {
  return connection.get<RunningRow>(
    `SELECT lane, attempts, started_at, history FROM payments_inbox_delivery
     WHERE event_seq = ? AND handler = ? AND token = ? AND state = 'running'`,
    [seq, handler, token],
  );
}

function change(
  connection: SqliteConnection,
  { seq, handler }: LeaseName,
  set: string,
  values: readonly unknown[],
): void {
  connection.run(
    `UPDATE payments_inbox_delivery SET ${set}, worker = NULL, alone = 0 WHERE event_seq = ? AND handler = ?`,
    [...values, seq, handler],
  );
}
