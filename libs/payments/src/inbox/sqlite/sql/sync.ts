import type { StoredClock, Times } from '../store-clock.js';
import type { SqliteConnection } from '../thread/connection.js';

/**
 * A write whose commit syncs the write-ahead log, and with it every earlier commit in it: the log is one file, written
 * in the order of the commits and read back in that order. A commit that has left the log is in the database file,
 * because a checkpoint syncs the log before it copies from it, and the database file before the log is written anew.
 * It also stores the clock.
 */
export function sync(
  connection: SqliteConnection,
  _request: null,
  { clock, wall }: Pick<Times, 'clock' | 'wall'>,
): void {
  connection.run(
    'UPDATE payments_inbox_meta SET syncs = syncs + 1, wall = iif(?1 > clock, ?2, wall), clock = max(clock, ?1)',
    [clock, wall],
  );
}

/** The clock as it was stored last. */
export function storedClock(connection: SqliteConnection): StoredClock {
  return connection.get<StoredClock>('SELECT wall, clock FROM payments_inbox_meta')!;
}
