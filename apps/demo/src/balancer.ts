import { once } from 'node:events';
import { createServer, request as ask } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { pipeline } from 'node:stream/promises';

/** What stands between two hops, and not between sender and receiver (RFC 9110, section 7.6.1). */
const HOP_BY_HOP = new Set(['connection', 'keep-alive', 'transfer-encoding']);

/**
 * One address in front of several shops: each request goes to the next of them, and the answer comes back as it is
 * written, since the events of a page never end. What was sent to a shop that died with it is answered 502, since
 * nobody knows what it did with it; the sender of a delivery tries again.
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
      const gone = new AbortController();
      response.once('close', () => gone.abort());
      const answer = await this.#forward(request, Buffer.concat(chunks), gone.signal);
      if (answer === undefined) return void response.writeHead(503).end();
      response.writeHead(answer.statusCode!, withoutHops(answer));
      response.flushHeaders();
      await pipeline(answer, response);
    } catch {
      // Half an answer is none: whoever reads it sees that it broke off.
      if (response.headersSent) response.destroy();
      else response.writeHead(502).end();
    }
  }

  /** `undefined` where there is nobody to ask. */
  async #forward(request: IncomingMessage, body: Buffer, signal: AbortSignal) {
    const start = this.#turn++;
    for (let tries = 0; tries < this.targets.length; tries += 1) {
      const target = this.targets[(start + tries) % this.targets.length]!;
      try {
        return await this.#send(target, request, body, signal);
      } catch (error) {
        // Another may be asked where this one can't have done anything.
        if (request.method !== 'GET' && !isRefused(error)) throw error;
      }
    }
    return undefined;
  }

  /** With the host it was sent to, by which a shop tells its own pages from others. */
  async #send(target: string, request: IncomingMessage, body: Buffer, signal: AbortSignal) {
    const headers = { ...withoutHops(request), 'content-length': body.length };
    const { method = 'GET', url = '/' } = request;
    // A connection of its own: one that was kept may be closed by the shop in the moment it is used again.
    const sent = ask(target + url, { method, headers, agent: false, signal }).end(body);
    const [answer] = (await once(sent, 'response')) as [IncomingMessage];
    // From here on it is the answer that breaks off.
    sent.on('error', () => {});
    return answer;
  }
}

function withoutHops({ headers }: IncomingMessage): IncomingMessage['headers'] {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !HOP_BY_HOP.has(name)));
}

function isRefused(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === 'ECONNREFUSED';
}
