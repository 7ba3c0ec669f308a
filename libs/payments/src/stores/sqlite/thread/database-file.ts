import { closeSync, fchmodSync, openSync, realpathSync, statSync } from 'node:fs';
import { optionsInvalid } from '../../../errors/option-checks.js';
import { protect } from '../sql/commit.js';
import { retryWhileBusy, SqliteConnection } from './connection.js';
import type { Driver, StoredClock, Times } from './connection.js';

/** The mode of a file that only its owner can read and write. */
const PRIVATE = 0o600;
/** The permissions of the group and of others. */
const SHARED = 0o077;

/**
 * Creates the database file with mode 0600, for any umask, if it does not exist. SQLite itself would create the file
 * with mode 0644. SQLite gives the `-wal` and `-shm` files the mode of the database file.
 *
 * An existing file is not opened here, because closing a descriptor of a file releases all locks that the process
 * holds on the file. Errors are not thrown, because SQLite reports them when it opens the file.
 */
export function createPrivateFile(file: string): void {
  try {
    const descriptor = openSync(file, 'wx', PRIVATE);
    try {
      fchmodSync(descriptor, PRIVATE);
    } finally {
      closeSync(descriptor);
    }
  } catch {
    // The file exists, or cannot be created.
  }
}

/**
 * Returns a warning if users other than the owner can access the files of an open database, with the command that fixes
 * this. Returns an empty array if other users cannot access the files, and on Windows, where modes have no meaning.
 */
export function sharedFilesWarning(file: string): string[] {
  if (process.platform === 'win32') return [];
  // SQLite creates `-wal` and `-shm` next to the file that a symbolic link leads to.
  const real = realpathSync(file);
  const shared = [real, `${real}-wal`, `${real}-shm`]
    .map((path) => ({ path, mode: (statSync(path, { throwIfNoEntry: false })?.mode ?? 0) & 0o777 }))
    .filter(({ mode }) => (mode & SHARED) !== 0);
  if (shared.length === 0) return [];
  const found = shared.map(({ path, mode }) => `${path} (mode 0${mode.toString(8)})`).join(', ');
  const command = `chmod 600 ${shared.map(({ path }) => quoted(path)).join(' ')}`;
  return [
    'The SQLite inbox stores payment data, and the permissions of its files allow other users of this machine to ' +
      `access them: ${found}. Run: ${command}`,
  ];
}

/** Returns a path as one word of a shell command. */
function quoted(path: string): string {
  return /^[\w/.,:@%+=-]+$/.test(path) ? path : `'${path.replaceAll("'", String.raw`'\''`)}'`;
}

/** The first version of SQLite without the WAL-reset bug. */
const SAFE_VERSION = '3.51.3';

export function sqliteVersion(driver: Driver): string {
  const database = new driver(':memory:');
  const { version } = database.prepare('SELECT sqlite_version() AS version').get() as {
    version: string;
  };
  database.close();
  return version;
}

export function isOldSqlite(version: string): boolean {
  const found = version.split('.').map(Number);
  const safe = SAFE_VERSION.split('.').map(Number);
  const index = safe.findIndex((part, at) => part !== (found[at] ?? 0));
  return index !== -1 && (found[index] ?? 0) < safe[index]!;
}

/**
 * Returns a warning if this version of SQLite has the WAL-reset bug and `isAllowed` is true.
 *
 * @throws PaymentsError `options_invalid` if this version of SQLite has the bug and `isAllowed` is false.
 */
export function oldSqliteWarning(version: string, isAllowed: boolean): string[] {
  if (!isOldSqlite(version)) return [];
  const reason =
    `This Node has SQLite ${version}, which has the WAL-reset bug (https://www.sqlite.org/wal.html#walresetbug): ` +
    'if one connection makes a checkpoint while another restarts the write-ahead log, committed transactions can be ' +
    'lost and the file corrupted. It is rare, but the inbox has several connections. ' +
    `SQLite ${SAFE_VERSION} fixes it: run Node 24.15.0 or later, or 22.22.3 or later of the 22 line ` +
    '("node -p process.versions.sqlite" prints the version of a Node)';
  if (isAllowed) return [`${reason}. The inbox uses it because of "allowOldSqlite".`];
  throw optionsInvalid(`${reason}. To start anyway, set "allowOldSqlite: true" of sqliteInbox().`);
}

/** The time for which SQLite itself waits for a lock, in milliseconds, before {@link retryWhileBusy} tries again. */
const BUSY_SLICE_MS = 10;

/**
 * Opens the connection of the thread. A commit of this connection returns when the commit is on the disk. The
 * connection blocks its thread while it waits for a lock, so the event loop that serves requests must not use it.
 */
export function openWriter(driver: Driver, file: string, busyTimeoutMs: number): SqliteConnection {
  const connection = new SqliteConnection(new driver(file));
  try {
    connection.exec(`PRAGMA busy_timeout = ${BUSY_SLICE_MS}`);
    // The switch to WAL needs an exclusive lock, and SQLite does not wait for that lock.
    retryWhileBusy(busyTimeoutMs, () => {
      const mode = connection.get<{ journal_mode: string }>('PRAGMA journal_mode = WAL');
      if (mode?.journal_mode === 'wal') return;
      throw new Error(
        `the file cannot be used with a write-ahead log (it stays in mode ${mode?.journal_mode})`,
      );
    });
    // fullfsync is for macOS only, where a plain fsync does not reach the disk. The cache has 64 MB, because ids have
    // no order and inserts read pages from all parts of the index of ids.
    connection.exec(
      'PRAGMA synchronous = FULL; PRAGMA fullfsync = ON; PRAGMA checkpoint_fullfsync = ON;' +
        'PRAGMA wal_autocheckpoint = 0; PRAGMA foreign_keys = ON; PRAGMA cache_size = -64000',
    );
    return connection;
  } catch (error) {
    connection.close();
    throw error;
  }
}

/**
 * Opens the connection of the event loop, for `context.commit`. The connection never waits for a lock and never makes a
 * checkpoint. Its commits append to the write-ahead log without an fsync. {@link sync}, which the thread runs, makes
 * these commits durable. `synchronous` is `NORMAL`, not `OFF`, because with `OFF` SQLite would not sync the header of a
 * log that it restarts, and a power loss could corrupt the file.
 */
export function openCommitter(driver: Driver, file: string): SqliteConnection {
  const connection = new SqliteConnection(new driver(file));
  try {
    connection.exec(
      'PRAGMA busy_timeout = 0; PRAGMA synchronous = NORMAL; PRAGMA fullfsync = ON;' +
        'PRAGMA wal_autocheckpoint = 0; PRAGMA foreign_keys = ON',
    );
    protect(connection.database, () => connection.inUse);
    return connection;
  } catch (error) {
    connection.close();
    throw error;
  }
}

/** The thread starts a checkpoint if the write-ahead log has this many pages. The number is SQLite's own default. */
const CHECKPOINT_PAGES = 1000;

/**
 * The limit while many calls arrive, in pages (16 MB). This limit is higher, because the calls would wait for the
 * checkpoint.
 */
const CHECKPOINT_PAGES_BUSY = 4000;

/** Whether it is time for a checkpoint. `busy` is whether the last transaction had several calls. */
export function isLogLong(connection: SqliteConnection, busy: boolean): boolean {
  // SQLite before 3.51 does not support NOOP, and makes a PASSIVE checkpoint instead.
  const { log, checkpointed } = checkpoint(connection, 'NOOP');
  return log - checkpointed >= (busy ? CHECKPOINT_PAGES_BUSY : CHECKPOINT_PAGES);
}

/**
 * Makes a checkpoint, without waiting for other connections. Only the thread makes checkpoints, so that the event loop
 * never waits for the fsyncs of a checkpoint. The first commit after a checkpoint restarts the log and syncs its
 * header. The thread makes that commit too, so that the next commit on the event loop does not wait for the disk.
 * However, if a reader delays the restart, one commit of the event loop may wait for one fsync.
 */
export function shortenLog(connection: SqliteConnection): void {
  const { log, checkpointed } = checkpoint(connection, 'PASSIVE');
  try {
    // The time of the calls is not known here. Zeros leave the stored clock unchanged.
    if (checkpointed === log) sync(connection, { clock: 0, wall: 0 });
  } catch {
    // The next commit restarts the log.
  }
}

/** Copies the whole log into the database, and then truncates the log, if no other connection uses the database. */
export function emptyLog(connection: SqliteConnection): void {
  checkpoint(connection, 'TRUNCATE');
}

/**
 * Makes a checkpoint. If the checkpoint fails, the log keeps all committed data. The next call tries again, or the next
 * process reads the log.
 */
function checkpoint(
  connection: SqliteConnection,
  mode: string,
): { log: number; checkpointed: number } {
  try {
    return connection.get<{ log: number; checkpointed: number }>(`PRAGMA wal_checkpoint(${mode})`)!;
  } catch {
    return { log: 0, checkpointed: -1 };
  }
}

/**
 * Makes a write whose commit syncs the write-ahead log. The commit also syncs every earlier commit in the log, because
 * the log is one file, which is written and read in the order of the commits. A commit that is no longer in the log is
 * in the database file. A checkpoint syncs the log before it copies the log, and syncs the database file before the log
 * restarts. The write also stores the clock.
 */
export function sync(
  connection: SqliteConnection,
  { clock, wall }: Pick<Times, 'clock' | 'wall'>,
): void {
  connection.run(
    'UPDATE payments_inbox_meta SET syncs = syncs + 1, wall = iif(?1 > clock, ?2, wall), clock = max(clock, ?1)',
    [clock, wall],
  );
}

/** Returns the clock that the last {@link sync} stored. */
export function storedClock(connection: SqliteConnection): StoredClock {
  return connection.get<StoredClock>('SELECT wall, clock FROM payments_inbox_meta')!;
}
