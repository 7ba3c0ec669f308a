import { closeSync, fchmodSync, openSync, realpathSync, statSync } from 'node:fs';

/** Only its owner can read and write it. */
const PRIVATE = 0o600;
/** The permissions of the group and of others. */
const SHARED = 0o077;

/**
 * Creates the database file with mode 0600, for any umask, if it does not exist. SQLite itself would create it
 * with mode 0644. SQLite gives the `-wal` and `-shm` files the mode of the database file.
 *
 * Only the process that creates the file has a descriptor of it to close: closing one ends all locks that the process
 * holds on a file. Errors are not thrown, because SQLite reports them when it opens the file.
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
 * A warning about the files of an open database that users other than their owner can access, with the command that
 * fixes it. `null` if there are none, and on Windows, where modes have no meaning.
 */
export function sharedFilesWarning(file: string): string | null {
  if (process.platform === 'win32') return null;
  // SQLite creates `-wal` and `-shm` next to the file that a symbolic link leads to.
  const real = realpathSync(file);
  const shared = [real, `${real}-wal`, `${real}-shm`]
    .map((path) => ({ path, mode: (statSync(path, { throwIfNoEntry: false })?.mode ?? 0) & 0o777 }))
    .filter(({ mode }) => (mode & SHARED) !== 0);
  if (shared.length === 0) return null;
  const found = shared.map(({ path, mode }) => `${path} (mode 0${mode.toString(8)})`).join(', ');
  const command = `chmod 600 ${shared.map(({ path }) => quoted(path)).join(' ')}`;
  return (
    'The SQLite inbox stores payment data, and permissions of its files allow other users of this machine to access ' +
    `them: ${found}. Run: ${command}`
  );
}

/** A path as one word of a shell command. */
function quoted(path: string): string {
  return /^[\w/.,:@%+=-]+$/.test(path) ? path : `'${path.replaceAll("'", String.raw`'\''`)}'`;
}
