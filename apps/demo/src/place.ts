import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { PostgresServer } from 'test-postgres';

/** Where shops book: a place of its own, which is gone afterwards. */
export interface Place extends AsyncDisposable {
  readonly name: 'SQLite' | 'PostgreSQL';
  /** The setting that leads a shop there. */
  readonly settings: Readonly<Record<string, string>>;
  /** The server; `null` where there is none. */
  readonly server: PostgresServer | null;
}

/** An empty folder, for SQLite. */
export async function openFolder(): Promise<Place> {
  const folder = await mkdtemp(path.join(tmpdir(), 'shop-data-'));
  return {
    name: 'SQLite',
    settings: { SHOP_DATA: folder },
    server: null,
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  };
}

/** An empty database: on the server of `url`, or on an embedded one that is started for it. */
export async function openDatabase(url?: string): Promise<Place> {
  // Loaded where it is used: it is there for development alone.
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
