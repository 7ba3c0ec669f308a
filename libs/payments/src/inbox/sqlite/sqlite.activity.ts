import { addCounts, firstMinute, KEPT_MINUTES, minuteOf, noCounts } from '../activity.minutes.js';
import type { ActivityCounts, RecordedMinute } from '../activity.minutes.js';
import type { SqliteConnection } from './sqlite.connection.js';

interface MinuteRow extends Omit<RecordedMinute, 'at' | 'handledWithin'> {
  readonly minute: number;
  readonly handled_within: string;
}

const COLUMNS = 'minute, received, handled, failed, dead, handled_within';

/** Adds to the current minute. It is read first: the lock of the transaction keeps other processes out. */
export function record(
  connection: SqliteConnection,
  { counts }: { readonly counts: ActivityCounts },
  now: number,
): void {
  const minute = minuteOf(now);
  const row = connection.get<MinuteRow>(
    `SELECT ${COLUMNS} FROM payments_inbox_activity WHERE minute = ?`,
    minute,
  );
  const sum = addCounts(row ? toRecorded(row) : noCounts(), counts);
  connection.run(
    `INSERT OR REPLACE INTO payments_inbox_activity (${COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)`,
    minute,
    sum.received,
    sum.handled,
    sum.failed,
    sum.dead,
    JSON.stringify(sum.handledWithin),
  );
}

/** What was recorded of the last minutes. */
export function activity(
  connection: SqliteConnection,
  { minutes }: { readonly minutes: number },
  now: number,
): RecordedMinute[] {
  return connection
    .all<MinuteRow>(
      `SELECT ${COLUMNS} FROM payments_inbox_activity WHERE minute >= ?`,
      firstMinute(now, minutes),
    )
    .map(toRecorded);
}

/** Forgets what nobody can ask for any more. */
export function pruneActivity(connection: SqliteConnection, now: number): void {
  const first = firstMinute(now, KEPT_MINUTES);
  connection.run('DELETE FROM payments_inbox_activity WHERE minute < ?', first);
}

function toRecorded({ minute, handled_within, ...counts }: MinuteRow): RecordedMinute {
  return { at: minute, ...counts, handledWithin: JSON.parse(handled_within) as number[] };
}
