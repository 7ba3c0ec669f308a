import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';

/**
 * A free port of loopback, for a process that needs a port number. It is below the ephemeral ports (from 32768 on
 * Linux, from 49152 elsewhere), so that the system gives it to no other process before that process listens.
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
