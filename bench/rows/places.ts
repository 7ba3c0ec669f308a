import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startPostgres } from 'test-postgres';
import type { PostgresServer } from 'test-postgres';

/** A folder for a row's files, on the disk that the system's temporary folder is on. */
export async function temporaryFolder(ending: AsyncDisposableStack): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'payments-bench-'));
  ending.defer(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

/** A PostgreSQL of a row's own, at its default settings with fsync on; or the one TEST_DATABASE_URL names. */
export async function ownPostgres(ending: AsyncDisposableStack): Promise<PostgresServer> {
  const server = await startPostgres();
  ending.defer(() => server.end());
  return server;
}
