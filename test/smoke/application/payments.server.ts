import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** The payments service, as far as one payment needs it: a token, and a transaction. */
export class PaymentsServer {
  /** Method, path and credentials of every request, in the order they came. */
  readonly seen: string[] = [];

  readonly #server = createServer((request, response) => {
    this.seen.push(`${request.method} ${request.url} ${request.headers.authorization}`);
    request.resume();
    response.setHeader('content-type', 'application/json');
    response.end(
      request.url === '/v1/auth/token'
        ? '{"access_token":"token-1","expires_in":"3599","token_type":"Bearer"}'
        : '{"status":"complete"}',
    );
  });

  async start(): Promise<string> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async stop(): Promise<void> {
    this.#server.close();
    await once(this.#server, 'close');
  }
}
