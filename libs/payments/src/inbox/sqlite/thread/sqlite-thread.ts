import { parentPort, workerData } from 'node:worker_threads';
import type { MessagePort } from 'node:worker_threads';
import { createPrivateFile } from '../file-modes.js';
import { storedClock } from './write-ahead-log.js';
import { openWriter } from './connection.js';
import { loadDriver, refuseOldSqlite, sqliteVersion } from './driver.js';
import { toFailure } from '../sqlite-failure.js';
import type { FromThread, ThreadData } from './messages.js';
import type { SqliteSettings } from '../sqlite-options.js';
import { createTables } from '../sql/schema.js';
import { SqliteServer } from './server.js';
import { WriteAheadLog } from './write-ahead-log.js';

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
  const send = (message: FromThread): void => port.postMessage(message);
  try {
    const driver = await loadDriver();
    // Before the file is touched.
    const version = settings.sqliteVersion ?? sqliteVersion(driver);
    if (!settings.allowOldSqlite) refuseOldSqlite(version);
    createPrivateFile(settings.file);
    const connection = openWriter(driver, settings.file, settings.busyTimeoutMs);
    createTables(connection, settings.busyTimeoutMs);
    const clock = storedClock(connection);
    new SqliteServer(port, connection, new WriteAheadLog(connection, version), settings).start();
    send({ kind: 'opened', sqliteVersion: version, clock });
  } catch (error) {
    send({ kind: 'failed', failure: toFailure(error) });
  }
}
