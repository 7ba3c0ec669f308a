import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { integerOption, optionsInvalid } from '../../errors/option-checks.js';

/** Options of `sqliteInbox()`. */
export interface SqliteInboxOptions {
  /**
   * Path of the database file, relative to the working directory. The inbox creates a missing file, with mode 0600, but
   * no missing folder. The file may also contain the application's own tables; `context.commit` can only write there.
   * The file must be on a disk of this machine: SQLite's write-ahead log does not work over a network file system.
   * If other users of the machine can access an existing file, its `-wal` or its `-shm`, the inbox logs a warning at
   * boot.
   *
   * With `:memory:`, the inbox is for tests: a new database in memory, which is lost when the application closes, and on
   * which `context.commit` works as on a file. The inbox uses it on the event loop, without a thread. The response to a
   * webhook request is 2xx only after every handler has succeeded, as with `memoryInbox()`. The other options have no effect.
   */
  file: string;
  /**
   * Whether to start, with a warning in the log, on a SQLite older than 3.51.3, whose WAL-reset bug can lose
   * committed transactions; for example on a build with a backport of the fix. Default `false`.
   */
  allowOldSqlite?: boolean;
  /**
   * How many milliseconds an operation waits while another process, or another connection of the application, locks the
   * file. 100 to 60,000. Default 5,000.
   */
  busyTimeoutMs?: number;
  /**
   * The file that the inbox's worker thread runs, as a path or a `file:` URL. Only a bundled application needs this
   * option: bundle `nestjs-payments/sqlite/thread` as a second entry, and pass the path of its output. Default: the file
   * in this package.
   *
   * @example
   * ```ts
   * sqliteInbox({ file: 'payments-inbox.db', threadPath: join(__dirname, 'payments-thread.js') });
   * ```
   */
  threadPath?: string | URL;
}

/** Value of the option `file` for a database in memory. */
export const MEMORY = ':memory:';

/** The complete, validated options of a SQLite store. */
export interface SqliteSettings {
  /** An absolute path, or {@link MEMORY}. */
  readonly file: string;
  readonly allowOldSqlite: boolean;
  readonly busyTimeoutMs: number;
  /** An absolute path; `null` for the file in this package. */
  readonly threadPath: string | null;
}

/** @throws PaymentsError `options_invalid`. */
export function resolveSqliteOptions(options: SqliteInboxOptions): SqliteSettings {
  const { file, allowOldSqlite = false } = options;
  if (typeof allowOldSqlite !== 'boolean') {
    throw optionsInvalid(
      `"sqliteInbox allowOldSqlite" must be true or false; it is a ${typeof allowOldSqlite}. Leave it out for false.`,
    );
  }
  return Object.freeze({
    file: fileOption(file),
    allowOldSqlite,
    busyTimeoutMs: integerOption('sqliteInbox busyTimeoutMs', options.busyTimeoutMs, {
      default: 5000,
      min: 100,
      max: 60_000,
      unit: 'milliseconds',
    }),
    threadPath: threadPathOption(options.threadPath),
  });
}

function fileOption(file: unknown): string {
  const fix = 'Give the path of a file, e.g. "payments-inbox.db".';
  if (typeof file !== 'string' || file.trim() === '' || file.includes('\0')) {
    throw optionsInvalid(`"sqliteInbox file" must be the path of the database file. ${fix}`);
  }
  if (file.trim() === MEMORY) return MEMORY;
  if (file.startsWith('file:')) {
    throw optionsInvalid(`"sqliteInbox file" is a URI; it must be a path. ${fix}`);
  }
  return resolve(file);
}

function threadPathOption(path: unknown): string | null {
  if (path === undefined) return null;
  const text = path instanceof URL ? path.href : path;
  if (typeof text !== 'string' || text.trim() === '' || text.includes('\0')) {
    throw optionsInvalid(
      '"sqliteInbox threadPath" must be the path or file: URL of the bundled thread, for example ' +
        'join(__dirname, "payments-thread.js"). Leave it out if the application is not bundled.',
    );
  }
  return text.startsWith('file:') ? fileURLToPath(text) : resolve(text);
}
