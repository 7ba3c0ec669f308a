import { spawnSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { freePort } from '../processes/free-port.ts';
import { RunningProcess } from '../processes/running-process.ts';
import { ServerProcess } from './server-process.ts';

/** The password of the server. No log line, error or object may contain it. */
const PASSWORD = 's3cret-password';

/** The settings that the adapter requires. */
const SAFE = { appendonly: 'yes', appendfsync: 'always', 'maxmemory-policy': 'noeviction' };

/** A Redis server in a process of its own, with its data in a temporary folder. */
export class BullMQServer extends ServerProcess implements AsyncDisposable {
  /** A connection of the test itself. It connects again by itself. */
  readonly client: Redis;
  readonly url: string;

  private constructor(
    private readonly folder: string,
    private readonly port: number,
    private readonly settings: Readonly<Record<string, string>>,
  ) {
    super();
    this.url = `redis://default:${PASSWORD}@127.0.0.1:${port}`;
    this.client = new Redis(this.url, { lazyConnect: true, retryStrategy: () => 50 });
    this.client.on('error', () => {});
  }

  /** Whether this machine has a Redis server. */
  static isInstalled(): boolean {
    return spawnSync('redis-server', ['--version']).status === 0;
  }

  /** Creates a server and starts it. `settings` replace the settings that the adapter requires. */
  static async start(settings: Readonly<Record<string, string>> = {}): Promise<BullMQServer> {
    const folder = await mkdtemp(join(tmpdir(), 'payments-redis-'));
    const server = new BullMQServer(folder, await freePort(), { ...SAFE, ...settings });
    await server.start();
    return server;
  }

  /** Starts the server on the same port and with the same data. */
  async start(): Promise<void> {
    const options = { ...this.settings, requirepass: PASSWORD, port: this.port, dir: this.folder };
    const args = Object.entries(options).flatMap(([name, value]) => [`--${name}`, String(value)]);
    this.process = new RunningProcess('redis-server', [
      ...args,
      '--bind',
      '127.0.0.1',
      '--save',
      '',
    ]);
    await this.process.prints(/Ready to accept connections/);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.client.disconnect();
    await this.kill();
    await rm(this.folder, { recursive: true, force: true });
  }
}
