import { once } from 'node:events';
import { createServer, request as sendRequest } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';

/** Headers that belong to one connection and must not be forwarded (RFC 9110, section 7.6.1). */
const HOP_BY_HOP = new Set(['connection', 'keep-alive', 'transfer-encoding']);

/**
 * A load balancer, which has one address for several shops. The load balancer forwards each request to the next shop.
 * If a shop crashes while it handles a request, the load balancer responds with 502, because the outcome of the request
 * is unknown. The payments service then sends the webhook request again.
 */
export class LoadBalancer implements AsyncDisposable {
  /** The addresses of the shops, without a path. */
  targets: readonly string[] = [];
  readonly #server = createServer((request, response) => void this.#handle(request, response));
  #next = 0;

  static async start(): Promise<LoadBalancer> {
    const balancer = new LoadBalancer();
    balancer.#server.listen(0, '127.0.0.1');
    await once(balancer.#server, 'listening');
    return balancer;
  }

  /** The address of the load balancer, without a path. */
  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Closes all connections. */
  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      const body = await buffer(request);
      const clientClosed = new AbortController();
      response.once('close', () => clientClosed.abort());
      const forwarded = await this.#forward(request, body, clientClosed.signal);
      if (forwarded === undefined) return void response.writeHead(503).end();
      response.writeHead(forwarded.statusCode!, withoutHopHeaders(forwarded));
      await pipeline(forwarded, response);
    } catch {
      // If a part of the response was sent, the client must see that the response is incomplete.
      if (response.headersSent) response.destroy();
      else response.writeHead(502).end();
    }
  }

  /** Forwards a request. Resolves with the response of a shop, or with `undefined` if no shop is reachable. */
  async #forward(request: IncomingMessage, body: Buffer, signal: AbortSignal) {
    const start = this.#next++;
    for (let tries = 0; tries < this.targets.length; tries += 1) {
      const target = this.targets[(start + tries) % this.targets.length]!;
      try {
        return await this.#send(target, request, body, signal);
      } catch (error) {
        // Another shop may receive the request only if this shop cannot have processed it.
        if (request.method !== 'GET' && !isConnectionRefused(error)) throw error;
      }
    }
    return undefined;
  }

  /**
   * Sends a request to a shop. The request keeps the original `Host` header, because the shop compares this header with
   * the origin of a form.
   */
  async #send(target: string, request: IncomingMessage, body: Buffer, signal: AbortSignal) {
    const headers = { ...withoutHopHeaders(request), 'content-length': body.length };
    const { method = 'GET', url = '/' } = request;
    // The request uses a new connection, because the shop may close a kept-alive connection at the moment of its reuse.
    const sent = sendRequest(target + url, { method, headers, agent: false, signal }).end(body);
    const [response] = (await once(sent, 'response')) as [IncomingMessage];
    // From now on the response reports errors. Without a listener, the same error would crash the process here.
    sent.on('error', () => {});
    return response;
  }
}

function withoutHopHeaders({ headers }: IncomingMessage): IncomingMessage['headers'] {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !HOP_BY_HOP.has(name)));
}

function isConnectionRefused(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === 'ECONNREFUSED';
}
