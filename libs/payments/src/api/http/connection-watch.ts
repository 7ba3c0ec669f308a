import http, { type ClientRequest, type IncomingMessage, type RequestOptions } from 'node:http';
import https from 'node:https';
import type { Socket } from 'node:net';
import type { AxiosRequestConfig } from 'axios';
import type { Exchange } from './exchange.js';
import type { HttpAdapter, HttpAgents } from './http-options.js';

/** The part of `node:http` that axios lets a caller replace. */
interface HttpTransport {
  request(options: RequestOptions, onResponse: (response: IncomingMessage) => void): ClientRequest;
}

/**
 * Watches one request of axios's `http` adapter, to know after a failure whether a byte of it can have reached
 * the server. Node.js writes nothing before the connection is open (for https: before the handshake is done),
 * so a request whose connection never opened was certainly not sent.
 *
 * Other adapters ignore the replaced transport: then nothing is known, and `unsent` is false.
 */
export class ConnectionWatch implements Exchange {
  readonly config: AxiosRequestConfig;
  #begun = false;
  #opened = false;

  constructor(adapter: HttpAdapter | undefined, agents: HttpAgents, signal: AbortSignal) {
    const transport: HttpTransport = {
      request: (options, onResponse) => {
        const secure = options.protocol === 'https:';
        // Set here, because axios replaces agents that have a `proxyEnv` if its own proxy support is off.
        const agent = (secure ? agents.https : agents.http) ?? options.agent;
        const request = (secure ? https : http).request({ ...options, agent }, onResponse);
        this.#begun = true;
        request.once('socket', (socket) => this.#watch(socket, secure));
        return request;
      },
    };
    this.config = { ...(adapter && { adapter }), transport, signal };
  }

  get unsent(): boolean {
    return this.#begun && !this.#opened;
  }

  #watch(socket: Socket, secure: boolean): void {
    // A socket that is not connecting was kept alive, or an agent for a proxy has opened it.
    if (!socket.connecting) this.#opened = true;
    else socket.once(secure ? 'secureConnect' : 'connect', () => (this.#opened = true));
  }
}
