import type { StoredClock, Times } from '../store-clock.js';
import type { SqliteConnection } from './connection.js';
import { isOldSqlite } from './driver.js';

/** Pages in the write-ahead log from which it is copied into the database: SQLite's own default. */
const CHECKPOINT_PAGES = 1000;

/** The same while calls wait: they run first, until the log has 16 MB. */
const CHECKPOINT_PAGES_BUSY = 4000;

/**
 * Checkpoints. Only the thread makes them, so that the event loop never waits for their fsyncs. The first commit after a
 * checkpoint restarts the log and syncs its header. The thread makes that commit too, so that the next commit on the
 * event loop does not wait for the disk. (A reader can delay the restart. Then one commit may wait for one fsync.)
 */
export class WriteAheadLog {
  /** Before SQLite 3.51 there is no way to read the size of the log: SQLite makes checkpoints by itself. */
  readonly #automatic: boolean;

  constructor(
    private readonly connection: SqliteConnection,
    sqliteVersion: string,
  ) {
    this.#automatic = isOldSqlite(sqliteVersion);
    if (!this.#automatic) connection.exec('PRAGMA wal_autocheckpoint = 0');
  }

  /** Call it after each commit; `busy` if more calls wait. */
  keepShort(busy: boolean): void {
    if (this.#automatic) return;
    try {
      const before = this.#checkpoint('NOOP');
      const most = busy ? CHECKPOINT_PAGES_BUSY : CHECKPOINT_PAGES;
      if (before.log - before.checkpointed < most) return;
      const after = this.#checkpoint('PASSIVE');
      // It stores no time: that of the calls is not known here.
      if (after.checkpointed === after.log) sync(this.connection, null, { clock: 0, wall: 0 });
    } catch {
      // What was committed is safe in the log, and a later call tries again.
    }
  }

  /** Copies the whole log into the database and truncates it, if no other connection uses it. */
  empty(): void {
    try {
      this.#checkpoint('TRUNCATE');
    } catch {
      // The next process that opens the file reads the log.
    }
  }

  #checkpoint(mode: string): { log: number; checkpointed: number } {
    return this.connection.get<{ log: number; checkpointed: number }>(
      `PRAGMA wal_checkpoint(${mode})`,
    )!;
  }
}

/**
 * A write whose commit syncs the write-ahead log, and with it every earlier commit in it: the log is one file, written
 * in the order of the commits and read back in that order. A commit that has left the log is in the database file,
 * because a checkpoint syncs the log before it copies from it, and the database file before the log restarts.
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
