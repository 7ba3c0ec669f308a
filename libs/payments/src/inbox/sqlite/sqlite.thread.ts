import { parentPort, workerData } from 'node:worker_threads';
import { openWriter, SqliteConnection } from './sqlite.connection.js';
import { loadDriver } from './sqlite.driver.js';
import { toFailure } from './sqlite.failure.js';
import type { FromThread } from './sqlite.messages.js';
import type { SqliteSettings } from './sqlite.options.js';
import { migrate } from './sqlite.schema.js';
import { SqliteServer } from './sqlite.server.js';
import { refuseOldSqlite, sqliteVersion } from './sqlite.version.js';
import { WriteAheadLog } from './sqlite.wal.js';

// The thread that has the database: it waits for the disk, so that the event loop does not.

const port = parentPort!;
const settings = workerData as SqliteSettings;

function tell(message: FromThread): void {
  port.postMessage(message);
}

try {
  const driver = await loadDriver();
  const version = askVersion(new SqliteConnection(new driver(':memory:')));
  if (!settings.allowOldSqlite) refuseOldSqlite(version);
  const connection = openWriter(driver, settings.file, settings.busyTimeoutMs);
  migrate(connection, settings.busyTimeoutMs);
  new SqliteServer(port, connection, new WriteAheadLog(connection, version), settings).start();
  tell({ kind: 'opened', sqliteVersion: version });
} catch (error) {
  tell({ kind: 'failed', failure: toFailure(error) });
}

/** Asked before the file is touched. */
function askVersion(connection: SqliteConnection): string {
  const version = sqliteVersion(connection);
  connection.close();
  return version;
}
