import { randomBytes } from 'node:crypto';
import { Client } from 'pg';
import { PostgresCluster } from './postgres-cluster.js';

/** A PostgreSQL server for a test: an embedded one, or the server of `TEST_DATABASE_URL`. */
export interface PostgresServer {
  /**
   * Whether a test may stop, start and crash the server. False for the server of `TEST_DATABASE_URL`, for which these
   * operations reject.
   */
  readonly controllable: boolean;
  /** Creates an empty database and returns its connection string. */
  createDatabase(): Promise<string>;
  /** Runs one statement as the superuser, in the database of the connection string. */
  query<R = Record<string, unknown>>(connectionString: string, text: string): Promise<R[]>;
  /** Cuts every other connection to the database. Returns how many. */
  cutConnections(connectionString: string): Promise<number>;
  start(): Promise<void>;
  /** `fast` cuts the connections and shuts down in order; `immediate` stops at once, and the next start runs a recovery. */
  stop(mode?: 'fast' | 'immediate'): Promise<void>;
  restart(mode?: 'fast' | 'immediate'): Promise<void>;
  /** Kills the server (SIGKILL). Unlike after a power failure, the data in the cache of the operating system stays. */
  crash(): Promise<void>;
  /** Stops the server and removes its files or databases. On a busy machine, this takes longer than a hook may by default. */
  end(): Promise<void>;
}

/**
 * Starts an embedded server with fsync on, on a free loopback port and in a new temporary folder; or connects to the server
 * of `url`. An embedded server stops with {@link PostgresServer.end}, or when this process dies.
 */
export async function startPostgres(
  url = process.env['TEST_DATABASE_URL'],
): Promise<PostgresServer> {
  if (url) return new Server(url, null);
  const cluster = await PostgresCluster.create();
  await cluster.start();
  return new Server(cluster.url, cluster);
}

class Server implements PostgresServer {
  readonly #databases: string[] = [];
  /** Connections for the next queries, by connection string: a new one takes about 50 times as long as a short query. */
  readonly #idle = new Map<string, Client[]>();

  constructor(
    private readonly url: string,
    private readonly cluster: PostgresCluster | null,
  ) {}

  get controllable(): boolean {
    return this.cluster !== null;
  }

  async createDatabase(): Promise<string> {
    const name = `payments_test_${randomBytes(6).toString('hex')}`;
    // The encoding of the default template may be another one.
    await this.query(this.url, `CREATE DATABASE ${name} TEMPLATE template0 ENCODING 'UTF8'`);
    this.#databases.push(name);
    const url = new URL(this.url);
    url.pathname = `/${name}`;
    return url.href;
  }

  async query<R>(connectionString: string, text: string): Promise<R[]> {
    const client = this.#idle.get(connectionString)?.pop() ?? (await connect(connectionString));
    try {
      const { rows } = await client.query(text);
      const idle = this.#idle.get(connectionString) ?? [];
      this.#idle.set(connectionString, [...idle, client]);
      return rows as R[];
    } catch (error) {
      await client.end();
      throw error;
    }
  }

  async cutConnections(connectionString: string): Promise<number> {
    await this.#closeIdle();
    const cut = await this.query(
      connectionString,
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()`,
    );
    return cut.length;
  }

  async start(): Promise<void> {
    await this.#embedded().start();
  }

  async stop(mode: 'fast' | 'immediate' = 'fast'): Promise<void> {
    await this.#closeIdle();
    await this.#embedded().signal(mode === 'fast' ? 'SIGINT' : 'SIGQUIT');
  }

  async restart(mode: 'fast' | 'immediate' = 'fast'): Promise<void> {
    await this.stop(mode);
    await this.start();
  }

  async crash(): Promise<void> {
    await this.#closeIdle();
    await this.#embedded().signal('SIGKILL');
  }

  async end(): Promise<void> {
    await this.#closeIdle();
    if (this.cluster !== null) return this.cluster.remove();
    for (const name of this.#databases) {
      await this.query(this.url, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
    }
    await this.#closeIdle();
  }

  async #closeIdle(): Promise<void> {
    const clients = [...this.#idle.values()].flat();
    this.#idle.clear();
    await Promise.all(clients.map((client) => client.end()));
  }

  #embedded(): PostgresCluster {
    if (this.cluster === null)
      throw new Error('A test cannot stop the server of TEST_DATABASE_URL.');
    return this.cluster;
  }
}

async function connect(connectionString: string): Promise<Client> {
  const client = new Client({ connectionString });
  // A query rejects if its connection ends. An idle connection may end without a query.
  client.on('error', () => {});
  await client.connect();
  return client;
}
