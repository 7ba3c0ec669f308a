import { spawn, spawnSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';

/** The Redis program: the value of REDIS_SERVER, or by default `redis-server` of the Debian package. */
const PROGRAM = process.env['REDIS_SERVER'] ?? 'redis-server';

/** Whether this machine has Redis, so that BullMQ can be measured. */
export function isRedisInstalled(): boolean {
  return spawnSync(PROGRAM, ['--version']).status === 0;
}

/**
 * Starts Redis on a free port of the loopback interface, and resolves with the port.
 *
 * @param durable whether each write waits for the disk, as a commit of PostgreSQL does. If false, Redis writes nothing
 *   to the disk.
 */
export async function startRedis(durable: boolean, ending: AsyncDisposableStack): Promise<number> {
  const folder = await mkdtemp(join(tmpdir(), 'payments-bench-redis-'));
  ending.defer(() => rm(folder, { recursive: true, force: true }));
  const port = await freePort();
  const appends = durable ? ['--appendonly', 'yes', '--appendfsync', 'always'] : [];
  const settings = ['--port', String(port), '--bind', '127.0.0.1', '--dir', folder, '--save', ''];
  const server = spawn(PROGRAM, [...settings, '--maxmemory-policy', 'noeviction', ...appends], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const exited = new Promise<void>((resolve) => server.once('exit', () => resolve()));
  const kill = (): boolean => server.kill('SIGKILL');
  process.once('exit', kill);
  ending.defer(async () => {
    process.off('exit', kill);
    kill();
    await exited;
  });
  const client = new Redis({ host: '127.0.0.1', port, maxRetriesPerRequest: null });
  // Until Redis listens, the client fails to connect and retries.
  client.on('error', () => {});
  await client.ping();
  client.disconnect();
  return port;
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}
