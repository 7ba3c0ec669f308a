import { once } from 'node:events';
import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** What stands between two hops, and not between sender and receiver (RFC 9110, section 7.6.1). */
const HOP_BY_HOP = new Set([
  'connection',
  'content-length',
  'host',
  'keep-alive',
  'transfer-encoding',
]);

/**
 * One address in front of several shops: each request goes to the next of them. What was sent to a shop that died
 * with it is answered 502, since nobody knows what it did with it; the sender of a delivery tries again.
 */
export class Balancer implements AsyncDisposable {
  /** Where requests go: addresses without a path. */
  targets: readonly string[] = [];
  #turn = 0;
  readonly #server = createServer((request, response) => void this.#answer(request, response));

  static async start(): Promise<Balancer> {
    const balancer = new Balancer();
    balancer.#server.listen(0, '127.0.0.1');
    await once(balancer.#server, 'listening');
    return balancer;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk as Buffer);
      const answer = await this.#forward(request, Buffer.concat(chunks));
      const body = Buffer.from(await answer.arrayBuffer());
      const type = answer.headers.get('content-type');
      response.writeHead(answer.status, type === null ? {} : { 'content-type': type }).end(body);
    } catch {
      if (!response.headersSent) response.writeHead(502);
      response.end();
    }
  }

  async #forward({ method = 'GET', url = '/', headers }: IncomingMessage, body: Buffer) {
    const kept = Object.entries(headers).filter(([name]) => !HOP_BY_HOP.has(name));
    const start = this.#turn++;
    for (let tries = 0; tries < this.targets.length; tries += 1) {
      const target = this.targets[(start + tries) % this.targets.length]!;
      try {
        return await fetch(target + url, {
          method,
          headers: kept.map(([name, value]): [string, string] => [name, String(value)]),
          redirect: 'manual',
          ...(body.length > 0 && { body: new Uint8Array(body) }),
        });
      } catch (error) {
        // Another may be asked where this one can't have done anything.
        if (method !== 'GET' && !isRefused(error)) throw error;
      }
    }
    return new Response(null, { status: 503 });
  }
}

function isRefused(error: unknown): boolean {
  const { cause } = error as { cause?: { code?: unknown } };
  return cause?.code === 'ECONNREFUSED';
}
