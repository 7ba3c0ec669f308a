// The process that sends webhook requests. It creates and signs all requests before the measurement starts.
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { serveCommands } from '../../test/support/processes/command-process.ts';
import { delivery } from './webhook-requests.ts';
import type { Delivery, Scheme } from './webhook-requests.ts';

/** The requests to send, and the server that receives them. */
export interface LoadOrder {
  readonly url: string;
  readonly scheme: Scheme;
  readonly count: number;
  readonly connections: number;
}

export interface LoadResult {
  /** Seconds from the first byte that was sent to the last response that was read. */
  readonly seconds: number;
}

serveCommands(null, {
  async send({ url, scheme, count, connections }: LoadOrder): Promise<LoadResult> {
    const to = new URL(url);
    const requests = Array.from({ length: count }, () =>
      requestBytes(to.host, to.pathname, delivery(scheme)),
    );
    return closedLoop(to, requests, connections);
  },
});

/** Returns the bytes of a request, which are created before the measurement starts. */
function requestBytes(host: string, path: string, { headers, body }: Delivery): Buffer {
  const lines = Object.entries({ host, 'content-length': String(body.length), ...headers });
  const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('');
  return Buffer.concat([Buffer.from(`POST ${path} HTTP/1.1\r\n${head}\r\n`), body]);
}

/**
 * Sends the requests over `connections` kept-alive connections. Each connection sends its next request as soon as it
 * has read the previous response. The parser supports only the bodies that Nest and Node send, with a content length
 * or in chunks. The parser uses far less processor time than the server.
 *
 * @throws if a response is not a 2xx.
 */
async function closedLoop(
  { hostname, port }: URL,
  requests: readonly Buffer[],
  connections: number,
): Promise<LoadResult> {
  const sockets = await Promise.all(
    Array.from({ length: connections }, () => open(hostname, Number(port))),
  );
  let next = 0;
  const start = performance.now();
  await Promise.all(
    sockets.map(async (socket) => {
      while (next < requests.length) {
        const request = requests[next]!;
        next += 1;
        await exchange(socket, request);
      }
      socket.destroy();
    }),
  );
  return { seconds: (performance.now() - start) / 1000 };
}

function open(host: string, port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port, noDelay: true }, () => {
      socket.off('error', reject);
      resolve(socket);
    });
    socket.once('error', reject);
  });
}

function exchange(socket: Socket, request: Buffer): Promise<void> {
  return new Promise((resolve, reject) => {
    let response = '';
    const done = (error?: Error): void => {
      socket.off('data', onData).off('error', done).off('close', onClose);
      if (error) reject(error);
      else resolve();
    };
    const onClose = (): void =>
      done(new Error(`The server closed the connection. Its response so far: ${response}`));
    const onData = (chunk: Buffer): void => {
      response += chunk.toString('latin1');
      const body = response.indexOf('\r\n\r\n') + 4;
      if (body === 3 || !isComplete(response, body)) return;
      done(
        /^HTTP\/1\.1 2\d\d/.test(response)
          ? undefined
          : new Error(`The response is not a 2xx: ${response}`),
      );
    };
    socket.on('data', onData).on('error', done).on('close', onClose);
    socket.write(request);
  });
}

function isComplete(response: string, body: number): boolean {
  const length = /\r\ncontent-length: (\d+)/i.exec(response);
  if (length) return response.length >= body + Number(length[1]);
  return response.endsWith('0\r\n\r\n') || response.startsWith('HTTP/1.1 204');
}
