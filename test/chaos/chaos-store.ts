import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout } from 'node:timers/promises';
import type { PostgresServer } from 'test-postgres';
import type { StoreKind } from './fault-plan.js';
import { TcpProxy } from './tcp-proxy.js';

/** An effect that an attempt committed. */
export interface Effect {
  readonly handler: string;
  readonly event: string;
  readonly transaction: string;
  readonly attempt: string;
}

/** The database of a chaos run, with the inbox and the tables of effects and purchases. It is empty at first. */
export interface ChaosStore extends AsyncDisposable {
  readonly kind: StoreKind;
  /** Path of the database file, or connection string, for process number `target`. */
  database(target: number): string;
  effects(): Promise<Effect[]>;
  /** Whether a transaction is open that other processes may wait for. */
  locked(): Promise<boolean>;
  /** Faults of the PostgreSQL server; `null` for SQLite. */
  readonly postgres: PostgresFaults | null;
}

/** Injects faults into the PostgreSQL server. */
export interface PostgresFaults {
  /** One proxy per process. */
  readonly proxies: readonly TcpProxy[];
  /**
   * Whether the server can be stopped and its backends killed. Only a server that the chaos run started itself is
   * controllable.
   */
  readonly controllable: boolean;
  /** Terminates all connections. */
  terminate(): Promise<void>;
  killBackend(): Promise<void>;
  restart(how: 'fast' | 'immediate' | 'crash'): Promise<void>;
  /** Stops the processes that serve the database with SIGSTOP for `ms` milliseconds. */
  stopBackends(ms: number): Promise<void>;
}

/** The maximum time that PostgreSQL may take to recover after a backend was killed, in milliseconds. */
const RECOVERY_MS = 30_000;
const TABLE =
  'CREATE TABLE effect (handler text NOT NULL, event text NOT NULL, transaction_id text NOT NULL, attempt text NOT NULL)';
const PURCHASES = 'CREATE TABLE purchase (reference text PRIMARY KEY)';
const SELECT = 'SELECT handler, event, transaction_id AS "transaction", attempt FROM effect';
const BACKENDS =
  "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'";
const OPEN = `${BACKENDS} AND state LIKE 'idle in transaction%'`;

/** Creates a SQLite file in a new folder. */
export async function openSqlite(): Promise<ChaosStore> {
  const folder = await mkdtemp(path.join(tmpdir(), 'payments-chaos-'));
  const file = path.join(folder, 'inbox.db');
  withDatabase(file, (database) => database.exec(`${TABLE}; ${PURCHASES}`));
  return {
    kind: 'sqlite',
    database: () => file,
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

/** Creates a database on the server at `url`, or on an embedded server that it starts. */
export async function openPostgres(processes: number, url?: string): Promise<ChaosStore> {
  // A development dependency, so it is loaded only if it is needed.
  const { startPostgres } = await import('test-postgres');
  const server = await startPostgres(url);
  try {
    const direct = await server.createDatabase();
    await server.query(direct, TABLE);
    await server.query(direct, PURCHASES);
    const proxies = await Promise.all(
      Array.from({ length: processes }, () => TcpProxy.before(direct)),
    );
    return {
      kind: 'postgres',
      database: (target) => proxies[target]![1],
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
      // PostgreSQL 18 never ends if it receives a shutdown request during this recovery. Until the server notices that
      // the backend is dead, the server still accepts connections, and lists the backend.
      await until(async () => {
        const listed = `SELECT FROM pg_stat_activity WHERE pid = ${backend.pid}`;
        return (await server.query(database, listed)).length === 0;
      });
    },
    stopBackends: async (ms) => {
      const backends = await server.query<{ pid: number }>(database, `SELECT pid ${BACKENDS}`);
      const signal = (name: NodeJS.Signals): void => {
        for (const { pid } of backends) {
          try {
            process.kill(pid, name);
          } catch {
            // The backend has ended.
          }
        }
      };
      signal('SIGSTOP');
      await setTimeout(ms);
      signal('SIGCONT');
    },
    restart: async (how) => {
      if (how !== 'crash') return server.restart(how);
      await server.crash();
      await server.start();
    },
  };
}

async function until(recovered: () => Promise<boolean>): Promise<void> {
  const end = performance.now() + RECOVERY_MS;
  while (!(await recovered().catch(() => false))) {
    if (performance.now() > end) throw new Error('PostgreSQL did not recover.');
    await setTimeout(50);
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
