import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../processes/free-port.ts';
import { RunningProcess } from '../processes/running-process.ts';
import { ServerProcess } from './server-process.ts';

/**
 * The scripts of the server. The commands of Debian in `/usr/sbin` switch to the user `rabbitmq`, who cannot write to
 * the temporary folder of the test. Therefore the tests start the scripts that these commands call.
 */
const FOLDERS = ['/usr/lib/rabbitmq/bin', '/opt/homebrew/opt/rabbitmq/sbin'];
const folder = FOLDERS.find((path) => existsSync(join(path, 'rabbitmq-server')));

const USER = 'payments';
/** The password of the server's only user. */
export const RABBITMQ_PASSWORD = 's3cret-password';

/** A RabbitMQ server in a process group of its own, with its own epmd, cookie and data in a temporary folder. */
export class RabbitMQServer extends ServerProcess implements AsyncDisposable {
  #epmd: RunningProcess | undefined;

  private constructor(
    private readonly data: string,
    private readonly port: number,
    private readonly env: NodeJS.ProcessEnv,
  ) {
    super();
  }

  /** Whether this machine has the server. */
  static isInstalled(): boolean {
    return folder !== undefined;
  }

  /** Creates the data folder and starts the server on a free port of loopback. */
  static async start(): Promise<RabbitMQServer> {
    const data = mkdtempSync(join(tmpdir(), 'rabbitmq-'));
    const [port, dist, epmd] = [await freePort(), await freePort(), await freePort()];
    writeFileSync(
      join(data, 'rabbitmq.conf'),
      [
        `listeners.tcp.1 = 127.0.0.1:${port}`,
        `default_user = ${USER}`,
        `default_pass = ${RABBITMQ_PASSWORD}`,
        'log.console = true',
        'log.file = false',
      ].join('\n'),
    );
    writeFileSync(join(data, 'enabled_plugins'), '[].\n');
    const env = {
      PATH: process.env['PATH'],
      LANG: 'C.UTF-8',
      HOME: data,
      ERL_EPMD_PORT: String(epmd),
      ERL_EPMD_ADDRESS: '127.0.0.1',
      // Otherwise, a helper process of the server may start an epmd in the background, which nothing ends.
      ERL_ZFLAGS: '-start_epmd false',
      RABBITMQ_NODENAME: `payments-${port}@localhost`,
      RABBITMQ_DIST_PORT: String(dist),
      RABBITMQ_CONFIG_FILE: join(data, 'rabbitmq.conf'),
      RABBITMQ_ENABLED_PLUGINS_FILE: join(data, 'enabled_plugins'),
      RABBITMQ_MNESIA_BASE: join(data, 'mnesia'),
      RABBITMQ_LOG_BASE: join(data, 'log'),
      RABBITMQ_PID_FILE: join(data, 'pid'),
      // One scheduler instead of one per processor: the tests send few messages, and the server starts faster.
      RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS: '+S 1:1 +SDio 1',
    };
    const server = new RabbitMQServer(data, port, env);
    await server.restart();
    return server;
  }

  /** The URL with user and password. */
  get url(): string {
    return `amqp://${USER}:${RABBITMQ_PASSWORD}@127.0.0.1:${this.port}`;
  }

  /** Starts the server again, on the same port and with the same data. */
  async restart(): Promise<void> {
    const { env } = this;
    // The epmd runs in the foreground, because an epmd that the server starts by itself outlives the server.
    this.#epmd ??= new RunningProcess('epmd', ['-port', env['ERL_EPMD_PORT']!], { env });
    this.process = new RunningProcess(join(folder!, 'rabbitmq-server'), [], { env, group: true });
    await this.process.prints(/Server startup complete/);
  }

  /** Runs `rabbitmqctl` against this server, and returns what it prints. */
  async control(...args: readonly string[]): Promise<string> {
    const { env } = this;
    const node = env['RABBITMQ_NODENAME']!;
    await using command = new RunningProcess(join(folder!, 'rabbitmqctl'), ['-n', node, ...args], {
      env,
    });
    const { code } = await command.ended;
    if (code !== 0) throw new Error(`rabbitmqctl ended with ${code}:\n${command.output}`);
    return command.stdout;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
    await this.#epmd?.kill();
    rmSync(this.data, { recursive: true, force: true });
  }
}
