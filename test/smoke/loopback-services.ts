import { once } from 'node:events';
import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gunzipSync } from 'node:zlib';

/**
 * A fake payments service and a fake Sentry on one port of this machine. Responds to each token request with the given
 * token, and stores the envelopes that are sent to Sentry.
 */
export class LoopbackServices implements AsyncDisposable {
  /** The envelopes that were sent to Sentry, as text. */
  readonly envelopes: string[] = [];
  readonly #token: string;
  readonly #server = createServer((request, response) => void this.#respond(request, response));

  private constructor(token: string) {
    this.#token = token;
  }

  static async start(token: string): Promise<LoopbackServices> {
    const services = new LoopbackServices(token);
    services.#server.listen(0, '127.0.0.1');
    await once(services.#server, 'listening');
    return services;
  }

  get baseUrl(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  get sentryDsn(): string {
    return `http://public@127.0.0.1:${this.#port}/1`;
  }

  get #port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  async #respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await bodyOf(request);
    const { url = '' } = request;
    response.setHeader('content-type', 'application/json');
    if (url.startsWith('/api/')) {
      this.envelopes.push(body);
      response.end('{}');
    } else if (url === '/v1/auth/token') {
      const token = { access_token: this.#token, expires_in: '3599', token_type: 'Bearer' };
      response.end(JSON.stringify(token));
    } else {
      response.end('{"status":"complete"}');
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
  const body = Buffer.concat(chunks);
  return (request.headers['content-encoding'] === 'gzip' ? gunzipSync(body) : body).toString();
}
