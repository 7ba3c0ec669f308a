import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startPostgres } from 'test-postgres';
import type { PostgresServer } from 'test-postgres';

/** Creates an empty folder in the temporary folder of the system. The folder is removed when the row ends. */
export async function temporaryFolder(ending: AsyncDisposableStack): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'payments-bench-'));
  ending.defer(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

/** Starts a PostgreSQL server with default settings and fsync, or returns the server in TEST_DATABASE_URL. */
export async function ownPostgres(ending: AsyncDisposableStack): Promise<PostgresServer> {
  const server = await startPostgres();
  ending.defer(() => server.end());
  return server;
}
