import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';

/** A request that the scripted service received. */
export interface SeenRequest {
  method: string;
  /** The path with its query, exactly as received. */
  path: string;
  headers: IncomingMessage['headers'];
  body: string;
}

/** Handles a request. It may send no response. */
export type Script = (request: SeenRequest, response: ServerResponse) => void;

/** Responds with JSON. */
export function json(status: number, body: unknown, headers: Record<string, string> = {}): Script {
  return (_, response) => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers });
    response.end(JSON.stringify(body));
  };
}

/** Never responds. */
export const silence: Script = () => {};

/** Closes the connection without a response. */
export const hangUp: Script = (_, response) => {
  response.socket?.destroy();
};

/**
 * A payments service on loopback, written only from the documentation of the service. It has a script for the token endpoint
 * and one for all other paths. Tests can change both.
 */
export class ScriptedService {
  readonly tokenRequests: SeenRequest[] = [];
  readonly calls: SeenRequest[] = [];
  readonly sockets = new Set<Socket>();
  connections = 0;

  /** By default, the response to the n-th token request is `token-n`, valid for 3599 seconds. */
  onToken: Script = (request, response) => json(200, this.tokenAnswer())(request, response);
  /** Handles all other requests. The scripts in `queue` are used first, and each of them handles one request. */
  onCall: Script = json(200, { status: 'complete' });
  readonly queue: Script[] = [];

  readonly #server = createServer((request, response) => void this.#serve(request, response));

  private constructor() {
    // Only tests end connections. A slow machine must not.
    this.#server.keepAliveTimeout = 0;
    this.#server.on('connection', (socket) => {
      this.connections += 1;
      this.sockets.add(socket);
      socket.once('close', () => this.sockets.delete(socket));
    });
  }

  static async start(port = 0): Promise<ScriptedService> {
    const service = new ScriptedService();
    service.#server.listen(port, '127.0.0.1');
    await once(service.#server, 'listening');
    return service;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get baseUrl(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  tokenAnswer(given: { token?: string; expiresIn?: unknown } = {}): object {
    const token = given.token ?? `token-${this.tokenRequests.length}`;
    const expiresIn = 'expiresIn' in given ? given.expiresIn : '3599';
    return { access_token: token, expires_in: expiresIn, token_type: 'Bearer' };
  }

  /** Accepts calls with one of these tokens, and responds with 401 to all others. */
  acceptOnly(...tokens: string[]): void {
    this.onCall = (request, response) => {
      const token = request.headers.authorization?.replace('Bearer ', '') ?? '';
      json(tokens.includes(token) ? 200 : 401, {})(request, response);
    };
  }

  async stop(): Promise<void> {
    this.#server.close();
    this.#server.closeAllConnections();
    await once(this.#server, 'close').catch(() => {});
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    request.on('error', () => {});
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const seen = {
      method: request.method ?? '',
      path: request.url ?? '',
      headers: request.headers,
      body: Buffer.concat(chunks).toString('utf8'),
    };
    if (seen.path === '/v1/auth/token') {
      this.tokenRequests.push(seen);
      this.onToken(seen, response);
    } else {
      this.calls.push(seen);
      (this.queue.shift() ?? this.onCall)(seen, response);
    }
  }
}
