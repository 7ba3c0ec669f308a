import { once } from 'node:events';
import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** An HTTP server on a free port of this machine. */
export abstract class LoopbackServer implements AsyncDisposable {
  readonly #server = createServer((request, response) => void this.handle(request, response));

  /** Its address, without a path. */
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

  /** Resolves once the server accepts connections. */
  protected async listen(): Promise<void> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
  }

  /** Responds to one request. Never rejects. */
  protected abstract handle(request: IncomingMessage, response: ServerResponse): Promise<void>;
}

/** Reads a request to its end. Rejects if the client closes the connection before. */
export async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}
