import http, { type ClientRequest, type IncomingMessage, type RequestOptions } from 'node:http';
import https from 'node:https';
import type { Socket } from 'node:net';
import type { AxiosRequestConfig } from 'axios';
import type { ResolvedApiOptions } from './api.options.js';
import { OVER_AGENTS } from './http.config.js';
import type { HttpWire } from './http.wire.js';

/** Node's way to begin a request, which axios lets one hand in. */
interface HttpTransport {
  request(options: RequestOptions, onResponse: (response: IncomingMessage) => void): ClientRequest;
}

/**
 * Watches one request over agents of the application's to tell, should it fail, whether a byte of it can have
 * reached the other side. Nothing is written before the connection is open (for https: before the handshake is
 * done), so a request whose connection never opened was certainly not carried out, and one whose did may have
 * been.
 */
export class ConnectionWatch implements HttpWire {
  readonly #agents: ResolvedApiOptions['agents'];
  readonly #signal: AbortSignal;
  #begun = false;
  #opened = false;

  constructor(agents: ResolvedApiOptions['agents'], signal: AbortSignal) {
    this.#agents = agents;
    this.#signal = signal;
  }

  readonly #transport: HttpTransport = {
    request: (options, onResponse) => {
      const secure = options.protocol === 'https:';
      const request = (secure ? https : http).request(options, onResponse);
      this.#begun = true;
      request.once('socket', (socket) => this.#watch(socket, secure));
      return request;
    },
  };

  get config(): AxiosRequestConfig {
    return {
      ...OVER_AGENTS,
      httpAgent: this.#agents.http,
      httpsAgent: this.#agents.https,
      transport: this.#transport,
      signal: this.#signal,
    };
  }

  get unsent(): boolean {
    return this.#begun && !this.#opened;
  }

  #watch(socket: Socket, secure: boolean): void {
    // A socket that isn't connecting was kept alive, or comes ready-made from an agent for a proxy.
    if (!socket.connecting) this.#opened = true;
    else socket.once(secure ? 'secureConnect' : 'connect', () => (this.#opened = true));
  }
}
