import { randomBytes } from 'node:crypto';
import { Client } from 'pg';
import { PostgresCluster } from './postgres-cluster.js';

/** A real PostgreSQL for a test: an embedded one of its own, or the one `TEST_DATABASE_URL` names. */
export interface PostgresServer {
  /**
   * Whether it may be stopped, started and crashed: false for the server of `TEST_DATABASE_URL`, where
   * those reject.
   */
  readonly controllable: boolean;
  /** Makes an empty database and says how to connect to it. */
  createDatabase(): Promise<string>;
  /** Runs one statement as superuser, in the database of that connection string. */
  query<R = Record<string, unknown>>(connectionString: string, text: string): Promise<R[]>;
  /** Cuts every connection to that database but its own. Returns how many. */
  cutConnections(connectionString: string): Promise<number>;
  start(): Promise<void>;
  /** `fast` cuts its connections and shuts down in order; `immediate` leaves the rest to recovery. */
  stop(mode?: 'fast' | 'immediate'): Promise<void>;
  restart(mode?: 'fast' | 'immediate'): Promise<void>;
  /** SIGKILL: as though the machine's power had failed, but for what the disk's cache holds. */
  crash(): Promise<void>;
  /** Ends it for good and removes what it made: some seconds on a busy machine, more than a hook has by default. */
  end(): Promise<void>;
}

/**
 * Starts one, on a free port of the loopback interface, in a folder of its own under the system's temporary
 * one, with fsync on; or uses the one that `url` names. It ends with {@link PostgresServer.end}, and by itself when this process dies.
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
  readonly #made: string[] = [];

  constructor(
    private readonly url: string,
    private readonly cluster: PostgresCluster | null,
  ) {}

  get controllable(): boolean {
    return this.cluster !== null;
  }

  async createDatabase(): Promise<string> {
    const name = `payments_test_${randomBytes(6).toString('hex')}`;
    // Whatever the template's encoding is: what is stored is UTF-8.
    await this.query(this.url, `CREATE DATABASE ${name} TEMPLATE template0 ENCODING 'UTF8'`);
    this.#made.push(name);
    const url = new URL(this.url);
    url.pathname = `/${name}`;
    return url.href;
  }

  async query<R>(connectionString: string, text: string): Promise<R[]> {
    const client = new Client({ connectionString });
    client.on('error', () => {});
    await client.connect();
    try {
      const { rows } = await client.query(text);
      return rows as R[];
    } finally {
      await client.end();
    }
  }

  async cutConnections(connectionString: string): Promise<number> {
    const cut = await this.query(
      connectionString,
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()`,
    );
    return cut.length;
  }

  async start(): Promise<void> {
    await this.#own().start();
  }

  async stop(mode: 'fast' | 'immediate' = 'fast'): Promise<void> {
    await this.#own().signal(mode === 'fast' ? 'SIGINT' : 'SIGQUIT');
  }

  async restart(mode: 'fast' | 'immediate' = 'fast'): Promise<void> {
    await this.stop(mode);
    await this.start();
  }

  async crash(): Promise<void> {
    await this.#own().signal('SIGKILL');
  }

  async end(): Promise<void> {
    if (this.cluster !== null) return this.cluster.remove();
    for (const name of this.#made) {
      await this.query(this.url, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
    }
  }

  #own(): PostgresCluster {
    if (this.cluster === null)
      throw new Error('The server of TEST_DATABASE_URL is not ours to stop');
    return this.cluster;
  }
}
