import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { checkFields, flag, optionsInvalid, whole } from '../../errors/option-checks.js';
import type { OptionChecks } from '../../errors/option-checks.js';

/** Options of `sqliteInbox()`. */
export interface SqliteInboxOptions {
  /**
   * Path of the database file, relative to the working directory. The inbox creates a missing file, with mode 0600, but
   * no missing folder. The file may also contain the application's own tables; `context.commit` can write only to this
   * file. The file must be on a disk of this machine, because SQLite's write-ahead log does not work over a network
   * file system. If other users of the machine can access an existing file, its `-wal` or its `-shm`, the inbox logs a
   * warning at boot.
   *
   * The value `:memory:` is for tests. The inbox then uses a new database in memory, which is lost when the application
   * closes. `context.commit` works as it does with a file. The operations on this database run on the event loop,
   * without a thread. The response to a webhook request is 2xx only after every handler has succeeded, as with
   * `memoryInbox()`. With `:memory:`, the other options have no effect.
   */
  file: string;
  /**
   * Whether to start with a SQLite older than 3.51.3 and only log a warning. The WAL-reset bug of these versions can
   * lose committed transactions. Set the option, for example, for a build with a backport of the fix. Default `false`.
   */
  allowOldSqlite?: boolean;
  /**
   * Milliseconds for which an operation waits while another process, or another connection of the application, locks
   * the file. 100 to 60,000. Default 5,000.
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

/**
 * The complete, validated options of a SQLite store. `file` is an absolute path or {@link MEMORY}, and `threadPath` an
 * absolute path or `undefined` for the file in this package.
 */
export type SqliteSettings = ReturnType<typeof resolveSqliteOptions>;

/** @throws PaymentsError `options_invalid`. */
export function resolveSqliteOptions(options: SqliteInboxOptions) {
  return checkFields('sqliteInbox', options, {
    file: checkFile,
    allowOldSqlite: flag(false),
    busyTimeoutMs: whole({ default: 5000, min: 100, max: 60_000, unit: 'milliseconds' }),
    threadPath: checkThreadPath,
  } satisfies OptionChecks<SqliteInboxOptions>);
}

function checkFile(name: string, file: unknown): string {
  const fix = 'Give the path of a file, e.g. "payments-inbox.db".';
  if (typeof file !== 'string' || file.trim() === '' || file.includes('\0')) {
    throw optionsInvalid(`"${name}" must be the path of the database file. ${fix}`);
  }
  if (file.trim() === MEMORY) return MEMORY;
  if (file.startsWith('file:')) {
    throw optionsInvalid(`"${name}" is a URI; it must be a path. ${fix}`);
  }
  return resolve(file);
}

function checkThreadPath(name: string, path: unknown): string | undefined {
  if (path === undefined) return undefined;
  const text = path instanceof URL ? path.href : path;
  if (typeof text !== 'string' || text.trim() === '' || text.includes('\0')) {
    throw optionsInvalid(
      `"${name}" must be the path or file: URL of the bundled thread, for example ` +
        'join(__dirname, "payments-thread.js"). Leave it out if the application is not bundled.',
    );
  }
  return text.startsWith('file:') ? fileURLToPath(text) : resolve(text);
}
