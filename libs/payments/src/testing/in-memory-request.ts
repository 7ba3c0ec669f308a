import type { Server } from 'node:http';
import { duplexPair } from 'node:stream';
import { Server as TlsServer } from 'node:tls';

/** A POST request: `path` is the request target, `headers` in any case. */
export interface InMemoryRequest {
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}

/** The response of the application. */
export interface InMemoryResponse {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

/**
 * Sends a POST request to an HTTP server that need not listen: the server gets one end of a stream in memory as a
 * new connection (https://nodejs.org/api/http.html#event-connection). No HTTP client is involved, so that tools
 * that intercept outgoing requests, such as msw and nock, do not see the request.
 *
 * @throws Error if the server closes the connection without a response.
 */
export async function sendInMemory(
  server: Server,
  request: InMemoryRequest,
): Promise<InMemoryResponse> {
  const [client, socket] = duplexPair();
  const secure = server instanceof TlsServer;
  // What applications read of a socket: `request.ip`, `request.protocol`.
  const address = { remoteAddress: '127.0.0.1', remoteFamily: 'IPv4', remotePort: 50_000 };
  Object.assign(socket, address, { encrypted: secure });
  // In some versions of Node, a server that destroys the connection does not end the other side.
  socket.once('close', () => client.push(null));
  server.emit(secure ? 'secureConnection' : 'connection', socket);
  client.write(head(request));
  client.write(request.body);
  return parse(Buffer.concat((await client.toArray()) as Buffer[]));
}

/** HTTP/1.0: the server answers without chunks and then closes the connection, so the end of the body is the end. */
function head({ path, headers, body }: InMemoryRequest): string {
  const fields = Object.entries({
    ...headers,
    Host: 'localhost',
    'Content-Length': body.byteLength,
  });
  const lines = fields.map(([name, value]) => `${name}: ${value}`);
  return [`POST ${path} HTTP/1.0`, ...lines, '', ''].join('\r\n');
}

function parse(bytes: Buffer): InMemoryResponse {
  const end = bytes.indexOf('\r\n\r\n');
  const [start = '', ...fields] = bytes.toString('latin1', 0, Math.max(0, end)).split('\r\n');
  const status = Number(start.split(' ')[1]);
  if (!status) throw new Error('The application closed the connection without a response.');
  const headers = fields.map((field) => {
    const [name = '', ...value] = field.split(':');
    return [name.toLowerCase(), value.join(':').trim()];
  });
  return { status, headers: Object.fromEntries(headers), body: bytes.subarray(end + 4) };
}
