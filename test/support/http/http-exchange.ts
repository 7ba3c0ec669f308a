import { once } from 'node:events';
import { request } from 'node:http';
import type { IncomingHttpHeaders } from 'node:http';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { buffer } from 'node:stream/consumers';

/** A complete response, as a sender receives it. */
export interface HttpResponse {
  status: number;
  headers: IncomingHttpHeaders;
  text: string;
  /** The parsed body, if it is JSON. */
  body: Record<string, unknown>;
}

export interface Exchange {
  method?: string;
  /** The target in the request line, if it differs from the path. */
  target?: string;
  /** A record, or names and values in turn, so that a name can appear twice. */
  headers?: readonly string[] | Record<string, string>;
  /** One chunk is sent with a Content-Length. Several are sent chunked, each in its own packet. */
  body?: Uint8Array | readonly Uint8Array[];
}

/** Sends one request with Node's client, which adds only headers about lengths. */
export async function exchange(
  url: string | URL,
  { method = 'POST', target, headers = [], body }: Exchange = {},
): Promise<HttpResponse> {
  const pairs = [...(isList(headers) ? headers : Object.entries(headers).flat())];
  const named = (name: string) =>
    pairs.some((part, i) => i % 2 === 0 && part.toLowerCase() === name);
  if (!named('host')) pairs.push('Host', new URL(url).host);
  const chunks = body === undefined ? [] : body instanceof Uint8Array ? [body] : body;
  if (chunks.length > 1) pairs.push('Transfer-Encoding', 'chunked');
  else if (method !== 'GET' && method !== 'HEAD' && !named('content-length')) {
    pairs.push('Content-Length', String(chunks[0]?.byteLength ?? 0));
  }
  const path = target === undefined ? {} : { path: target };
  const outgoing = request(url, { method, headers: pairs, agent: false, ...path });
  outgoing.setNoDelay(true);
  // Listens now, because the response may arrive, and the connection may end, before the whole body is sent.
  const responded = once(outgoing, 'response');
  responded.catch(() => {});
  outgoing.on('error', () => {});
  const closed = new Promise<void>((resolve) => outgoing.once('close', resolve));
  for (const chunk of chunks) {
    // Node calls back when the kernel has the chunk, so chunks are sent separately.
    const sent = new Promise<void>((resolve) => outgoing.write(chunk, () => resolve()));
    await Promise.race([sent, closed]);
  }
  outgoing.end();
  const [incoming] = (await responded) as [NodeJS.ReadableStream & Incoming];
  const received = (await buffer(incoming)).toString();
  return {
    status: incoming.statusCode,
    headers: incoming.headers,
    text: received,
    body: parse(received),
  };
}

interface Incoming {
  statusCode: number;
  headers: IncomingHttpHeaders;
}

/** A connection on which a test writes the bytes itself. */
export class RawConnection {
  #received = '';
  /** How many statuses were read. */
  #read = 0;
  readonly #end: Promise<unknown>;

  private constructor(readonly socket: Socket) {
    socket.on('error', () => {});
    socket.on('data', (data: Buffer) => (this.#received += data.toString('latin1')));
    this.#end = new Promise((resolve) => socket.once('close', resolve));
  }

  static async open(url: string): Promise<RawConnection> {
    const { hostname, port } = new URL(url);
    const socket = connect(Number(port), hostname);
    const connection = new RawConnection(socket);
    await once(socket, 'connect');
    return connection;
  }

  /** Resolves when the kernel has the bytes: with `false` if the other side has closed the connection. */
  async write(data: string | Uint8Array): Promise<boolean> {
    return new Promise((resolve) => this.socket.write(data, (error) => resolve(!error)));
  }

  /** The status of the next response, received already or not; `undefined` if the connection ends without one. */
  async status(): Promise<number | undefined> {
    this.#read += 1;
    for (;;) {
      const [status] = [...this.#received.matchAll(/HTTP\/1\.1 (\d{3}) /g)].slice(this.#read - 1);
      if (status !== undefined) return Number(status[1]);
      if (this.socket.closed) return undefined;
      await Promise.race([this.#end, new Promise((resolve) => this.socket.once('data', resolve))]);
    }
  }

  /** All data that was received until the connection was closed. */
  async all(): Promise<string> {
    await this.#end;
    return this.#received;
  }
}

export function parse(json: string): Record<string, unknown> {
  try {
    return JSON.parse(json) as Record<string, unknown>;
  } catch {
    return {};
  }
}

function isList(value: readonly string[] | Record<string, string>): value is readonly string[] {
  return Array.isArray(value);
}
