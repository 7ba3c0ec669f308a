import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout } from 'node:timers/promises';
import type { PostgresServer } from 'test-postgres';
import type { StoreKind } from './fault-plan.js';
import { TcpProxy } from './tcp-proxy.js';

/** An effect that a handler committed. */
export interface Effect {
  readonly handler: string;
  readonly event: string;
  readonly transaction: string;
  readonly run: string;
}

/** An empty database for a run: inboxes and the table of effects are in it. */
export interface ChaosStore extends AsyncDisposable {
  readonly kind: StoreKind;
  /** How process number `target` finds it: database file, or connection string. */
  where(target: number): string;
  effects(): Promise<Effect[]>;
  /** Whether a transaction is open that others may wait for. */
  locked(): Promise<boolean>;
  /** What faults act on; `null` for SQLite. */
  readonly postgres: PostgresFaults | null;
}

/** What can be done to PostgreSQL during a run. */
export interface PostgresFaults {
  /** The proxy of each process. */
  readonly proxies: readonly TcpProxy[];
  /** Whether the server can be stopped and its backends killed. `false` for a server that is not the run's own. */
  readonly controllable: boolean;
  terminate(): Promise<void>;
  killBackend(): Promise<void>;
  restart(how: 'fast' | 'immediate' | 'crash'): Promise<void>;
}

/** How long PostgreSQL may take to recover from the death of a backend, in milliseconds. */
const RECOVERY_MS = 30_000;
const TABLE =
  'CREATE TABLE effect (handler text NOT NULL, event text NOT NULL, transaction_id text NOT NULL, run text NOT NULL)';
const SELECT = 'SELECT handler, event, transaction_id AS "transaction", run FROM effect';
const BACKENDS =
  "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'";
const OPEN = `${BACKENDS} AND state LIKE 'idle in transaction%'`;

/** A database file in a folder of its own. */
export async function openSqlite(): Promise<ChaosStore> {
  const folder = await mkdtemp(path.join(tmpdir(), 'payments-chaos-'));
  const file = path.join(folder, 'inbox.db');
  withDatabase(file, (database) => database.exec(TABLE));
  return {
    kind: 'sqlite',
    where: () => file,
    effects: async () =>
      withDatabase(file, (database) =>
        Array.from(database.prepare(SELECT).all(), (row) => ({ ...row }) as unknown as Effect),
      ),
    locked: async () =>
      withDatabase(file, (database) => {
        try {
          database.exec('PRAGMA busy_timeout = 0; BEGIN IMMEDIATE; ROLLBACK');
          return false;
        } catch {
          return true;
        }
      }),
    postgres: null,
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  };
}

/** A database on the server of `url`, or on an embedded one that is started for it. */
export async function openPostgres(processes: number, url?: string): Promise<ChaosStore> {
  // Loaded only here: it is a development dependency.
  const { startPostgres } = await import('test-postgres');
  const server = await startPostgres(url);
  try {
    const direct = await server.createDatabase();
    await server.query(direct, TABLE);
    const proxies = await Promise.all(
      Array.from({ length: processes }, () => TcpProxy.before(direct)),
    );
    return {
      kind: 'postgres',
      where: (target) => proxies[target]![1],
      effects: () => server.query<Effect>(direct, SELECT),
      locked: async () => {
        const [open] = await server.query<{ count: string }>(direct, `SELECT count(*) ${OPEN}`);
        return open!.count !== '0';
      },
      postgres: faultsOf(
        server,
        direct,
        proxies.map(([proxy]) => proxy),
      ),
      [Symbol.asyncDispose]: async () => {
        await Promise.all(proxies.map(([proxy]) => proxy[Symbol.asyncDispose]()));
        await server.end();
      },
    };
  } catch (error) {
    await server.end();
    throw error;
  }
}

function faultsOf(
  server: PostgresServer,
  database: string,
  proxies: readonly TcpProxy[],
): PostgresFaults {
  return {
    proxies,
    controllable: server.controllable,
    terminate: async () => {
      await server.query(database, `SELECT pg_terminate_backend(pid) ${BACKENDS}`);
    },
    killBackend: async () => {
      const [backend] = await server.query<{ pid: number }>(
        database,
        `SELECT pid ${BACKENDS} ORDER BY random() LIMIT 1`,
      );
      if (backend === undefined) return;
      process.kill(backend.pid, 'SIGKILL');
      // PostgreSQL 18 never ends if it is to shut down while it recovers from this.
      await recovered(() => server.query(database, 'SELECT 1'));
    },
    restart: async (how) => {
      if (how !== 'crash') return server.restart(how);
      await server.crash();
      await server.start();
    },
  };
}

async function recovered(query: () => Promise<unknown>): Promise<void> {
  const end = performance.now() + RECOVERY_MS;
  for (;;) {
    try {
      await query();
      return;
    } catch (error) {
      if (performance.now() > end) throw error;
      await setTimeout(50);
    }
  }
}

function withDatabase<T>(file: string, work: (database: DatabaseSync) => T): T {
  const database = new DatabaseSync(file);
  try {
    database.exec('PRAGMA busy_timeout = 5000');
    return work(database);
  } finally {
    database.close();
  }
}
