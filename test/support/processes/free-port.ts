import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';

/**
 * A port of loopback that is free, for a process that must be told one. It lies below those a system hands out by
 * itself (from 32768 on Linux, from 49152 elsewhere), so that nobody is given it before that process listens.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(10_000, 32_000);
    if (await isFree(port)) return port;
  }
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  const listens = await new Promise<boolean>((resolve) => {
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => resolve(true));
  });
  if (listens) await new Promise((resolve) => server.close(resolve));
  return listens;
}
