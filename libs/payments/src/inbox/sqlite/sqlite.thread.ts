import { parentPort, workerData } from 'node:worker_threads';
import type { MessagePort } from 'node:worker_threads';
import { createPrivateFile } from './file-modes.js';
import { openWriter, SqliteConnection } from './sqlite.connection.js';
import { loadDriver } from './sqlite.driver.js';
import { toFailure } from './sqlite.failure.js';
import type { FromThread, ThreadData } from './sqlite.messages.js';
import type { SqliteSettings } from './sqlite.options.js';
import { migrate } from './sqlite.schema.js';
import { SqliteServer } from './sqlite.server.js';
import { refuseOldSqlite, sqliteVersion } from './sqlite.version.js';
import { WriteAheadLog } from './sqlite.wal.js';

// The entry of the worker thread that holds the database: the thread waits for the disk, so the event loop does not.
// The main thread imports this file too, but only to learn its URL, and an application may run in a worker of its own.
// So the file serves only in a worker that was started for it.

/**
 * URL of this file, or of the bundle that a bundler merged it into. `undefined` in a bundle whose format has no
 * `import.meta`.
 */
export const threadUrl: string | undefined = import.meta.url;

const { sqliteInboxThread } = (workerData ?? {}) as Partial<ThreadData>;
// Not awaited here: `require()` does not load a module that has a top-level `await`.
if (parentPort !== null && sqliteInboxThread !== undefined) {
  void serve(parentPort, sqliteInboxThread);
}

async function serve(port: MessagePort, settings: SqliteSettings): Promise<void> {
  const tell = (message: FromThread): void => port.postMessage(message);
  try {
    const driver = await loadDriver();
    const version = askVersion(new SqliteConnection(new driver(':memory:')));
    if (!settings.allowOldSqlite) refuseOldSqlite(version);
    createPrivateFile(settings.file);
    const connection = openWriter(driver, settings.file, settings.busyTimeoutMs);
    migrate(connection, settings.busyTimeoutMs);
    new SqliteServer(port, connection, new WriteAheadLog(connection, version), settings).start();
    tell({ kind: 'opened', sqliteVersion: version });
  } catch (error) {
    tell({ kind: 'failed', failure: toFailure(error) });
  }
}

/** Asked before the file is touched. */
function askVersion(connection: SqliteConnection): string {
  const version = sqliteVersion(connection);
  connection.close();
  return version;
}
