import { once } from 'node:events';
import { request } from 'node:http';
import type { IncomingHttpHeaders } from 'node:http';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { buffer } from 'node:stream/consumers';

/** A whole answer, as a sender sees it. */
export interface Answer {
  status: number;
  headers: IncomingHttpHeaders;
  text: string;
  /** The parsed body, where it is JSON. */
  body: Record<string, unknown>;
}

export interface Exchange {
  method?: string;
  /** What stands in the request line, where it is not the path. */
  target?: string;
  /** Names and values in turn, so that one name may come twice; or a record. */
  headers?: readonly string[] | Record<string, string>;
  /** One chunk goes with a Content-Length, several go chunked, each in a packet of its own. */
  body?: Uint8Array | readonly Uint8Array[];
}

/** Sends one request with Node's client, which adds only lengths. */
export async function exchange(
  url: string | URL,
  { method = 'POST', target, headers = [], body }: Exchange = {},
): Promise<Answer> {
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
  // From now on, since an answer may come, and the connection end, before all of the body is sent.
  const answered = once(outgoing, 'response');
  answered.catch(() => {});
  outgoing.on('error', () => {});
  const closed = new Promise<void>((resolve) => outgoing.once('close', resolve));
  for (const chunk of chunks) {
    // The callback comes once the chunk is in the kernel's hands, so that chunks travel apart.
    const sent = new Promise<void>((resolve) => outgoing.write(chunk, () => resolve()));
    await Promise.race([sent, closed]);
  }
  outgoing.end();
  const [incoming] = (await answered) as [NodeJS.ReadableStream & Incoming];
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

/** A connection whose bytes a test writes itself. */
export class RawConnection {
  #received = '';
  /** Statuses that were asked for. */
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

  /** Resolves once the kernel has taken it; `false` where the other side is gone. */
  async write(data: string | Uint8Array): Promise<boolean> {
    return new Promise((resolve) => this.socket.write(data, (error) => resolve(!error)));
  }

  /** The status of the next answer, which may have come already; `undefined` where the connection ends without one. */
  async status(): Promise<number | undefined> {
    this.#read += 1;
    for (;;) {
      const [status] = [...this.#received.matchAll(/HTTP\/1\.1 (\d{3}) /g)].slice(this.#read - 1);
      if (status !== undefined) return Number(status[1]);
      if (this.socket.closed) return undefined;
      await Promise.race([this.#end, new Promise((resolve) => this.socket.once('data', resolve))]);
    }
  }

  /** Everything received until the connection was closed. */
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
