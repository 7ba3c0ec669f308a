import { spawnSync } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { jetstreamManager } from '@nats-io/jetstream';
import type { JetStreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import type { NatsConnection, NodeConnectionOptions } from '@nats-io/transport-node';
import { freePort } from '../processes/free-port.ts';
import { RunningProcess } from '../processes/running-process.ts';
import { ServerProcess } from './server-process.ts';

const USER = 'payments';
const PASSWORD = 's3cret-password';

/** A NATS server with JetStream, in a process of its own, with its data in a temporary folder. */
export class JetStreamServer extends ServerProcess implements AsyncDisposable {
  private constructor(
    private readonly port: number,
    private readonly folder: string,
  ) {
    super();
  }

  /** Whether this machine has the server. */
  static isInstalled(): boolean {
    return spawnSync('nats-server', ['--version']).status === 0;
  }

  static async create(): Promise<JetStreamServer> {
    const folder = await mkdtemp(join(tmpdir(), 'payments-jetstream-'));
    const port = await freePort();
    // On a machine that is busy with something else, a client needs more than the usual two seconds to log in.
    const login = `{ user: ${USER}, password: ${PASSWORD}, timeout: 60 }`;
    const settings = [
      `listen: 127.0.0.1:${port}`,
      `authorization ${login}`,
      `jetstream { store_dir: ${JSON.stringify(join(folder, 'data'))} }`,
    ];
    await writeFile(join(folder, 'nats.conf'), settings.join('\n'));
    const server = new JetStreamServer(port, folder);
    await server.start();
    return server;
  }

  /** The address with user and password. */
  get url(): string {
    return `nats://${USER}:${PASSWORD}@127.0.0.1:${this.port}`;
  }

  /** Opens a connection for a test. */
  connect(options: NodeConnectionOptions = {}): Promise<NatsConnection> {
    const servers = `127.0.0.1:${this.port}`;
    return connect({ servers, user: USER, pass: PASSWORD, ...options });
  }

  /** Runs work with a client that manages streams and consumers. */
  async manage<T>(work: (manager: JetStreamManager, nc: NatsConnection) => Promise<T>): Promise<T> {
    const connection = await this.connect();
    try {
      return await work(await jetstreamManager(connection), connection);
    } finally {
      await connection.close();
    }
  }

  /** Starts the server, also again with the same port and data. Resolves when it accepts connections. */
  async start(): Promise<void> {
    const config = join(this.folder, 'nats.conf');
    this.process = new RunningProcess('nats-server', ['--config', config]);
    await this.process.prints(/Server is ready$/);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
    await rm(this.folder, { recursive: true, force: true });
  }
}
