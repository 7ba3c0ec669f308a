import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { PostgresServer } from 'test-postgres';

/** An empty database for shops. Disposing of this object removes the database. */
export interface TemporaryDatabase extends AsyncDisposable {
  readonly name: 'SQLite' | 'PostgreSQL';
  /** The environment variables with which a shop uses the database. */
  readonly settings: Readonly<Record<string, string>>;
  /** The PostgreSQL server; `null` for SQLite. */
  readonly server: PostgresServer | null;
}

/** Creates an empty folder for SQLite. */
export async function createSqliteFolder(): Promise<TemporaryDatabase> {
  const folder = await mkdtemp(path.join(tmpdir(), 'shop-data-'));
  return {
    name: 'SQLite',
    settings: { SHOP_DATA: folder },
    server: null,
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  };
}

/** Creates an empty PostgreSQL database on the server of `url`. Without a URL, starts an embedded server. */
export async function createPostgresDatabase(url?: string): Promise<TemporaryDatabase> {
  // This package is a development dependency, so it is loaded only if it is needed.
  const { startPostgres } = await import('test-postgres');
  const server = await startPostgres(url);
  try {
    return {
      name: 'PostgreSQL',
      settings: { DATABASE_URL: await server.createDatabase() },
      server,
      [Symbol.asyncDispose]: () => server.end(),
    };
  } catch (error) {
    await server.end();
    throw error;
  }
}
