import http, { type ClientRequest, type IncomingMessage, type RequestOptions } from 'node:http';
import https from 'node:https';
import type { Socket } from 'node:net';
import type { Transform } from 'node:stream';
import type { AxiosRequestConfig, AxiosResponse, InternalAxiosRequestConfig } from 'axios';
import type * as Undici from 'undici';
import type { HttpAdapter, HttpAgents, ResolvedApiOptions } from '../api-options.js';
import {
  bodyLimit,
  decoderOf,
  readBody,
  ResponseBody,
  type Exchange,
  type HttpRequest,
} from './http-exchange.js';

/** `token`: a new connection for every token request, so that a token request never waits for a call. */
export type ConnectionPurpose = 'calls' | 'token';

/** Connections to any host, for calls or for token requests. */
export interface Connections {
  /** Prepares one request. */
  exchange(request: HttpRequest): Exchange;
  /** Closes the connections, except those of agents and dispatchers that the application passed in. */
  close(): Promise<void>;
}

/**
 * How long an idle connection is kept, in milliseconds. Common servers close theirs after 5 s, and a POST on a
 * connection that is being closed has an unknown outcome. With less than 5 s this is rare.
 */
const IDLE_MS = 4_000;
/** How much longer than its request a connection may take to open, in milliseconds. So the request times out first. */
const CONNECT_GRACE_MS = 1_000;

/** Creates connections for the adapter that the options select. Imports undici if it is needed. */
export async function openConnections(
  options: ResolvedApiOptions,
  purpose: ConnectionPurpose,
): Promise<Connections> {
  if (options.adapter !== 'undici') return nodeConnections(options, purpose);
  const { dispatcher } = options;
  if (!dispatcher) return undiciConnections(await import('undici'), options, purpose);
  return { exchange: (request) => new UndiciExchange(dispatcher, request), close: async () => {} };
}

function undiciConnections(
  { Agent, buildConnector }: typeof Undici,
  options: ResolvedApiOptions,
  purpose: ConnectionPurpose,
): Connections {
  const limitMs = purpose === 'calls' ? options.attemptTimeoutMs : options.tokenTimeoutMs;
  const connector = buildConnector({ timeout: limitMs + CONNECT_GRACE_MS });
  const sockets = new Set<Socket>();
  const keepAlive = {
    connections: options.maxSockets,
    keepAliveTimeout: IDLE_MS,
    keepAliveMaxTimeout: IDLE_MS,
  };
  const agent = new Agent({
    ...(purpose === 'calls' ? keepAlive : { pipelining: 0 }),
    // The signal of each request limits its time.
    headersTimeout: 0,
    bodyTimeout: 0,
    connect: (to, callback) => {
      const socket = connector(to, callback) as unknown as Socket;
      sockets.add(socket);
      socket.once('close', () => sockets.delete(socket));
    },
  });
  return {
    exchange: (request) => new UndiciExchange(agent, request),
    close: async () => {
      const closed = agent.destroy();
      // undici does not close a connection that is being opened, and it would keep the process alive.
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

function nodeConnections(options: ResolvedApiOptions, purpose: ConnectionPurpose): Connections {
  // An HttpService of the application has its own agents, and fetch uses none.
  const own = options.adapter === 'http' && !options.http;
  const keepAlive = { keepAlive: true, maxSockets: options.maxSockets, timeout: IDLE_MS };
  const agentOptions: http.AgentOptions = purpose === 'calls' ? keepAlive : {};
  const agents = own
    ? { http: new http.Agent(agentOptions), https: new https.Agent(agentOptions) }
    : {};
  const used = { ...agents, ...options.agents };
  return {
    exchange: ({ signal }) => new AxiosExchange(options.adapter, used, signal),
    close: async () => {
      agents.http?.destroy();
      agents.https?.destroy();
    },
  };
}

/** The part of `node:http` that axios lets a caller replace. */
interface HttpTransport {
  request(options: RequestOptions, onResponse: (response: IncomingMessage) => void): ClientRequest;
}

/**
 * One request through an adapter of axios itself. With the adapter `http`, `unsent` is true until the connection is
 * open (for https: until the TLS handshake is done), because Node.js writes nothing before that.
 *
 * Other adapters ignore the replaced transport, so `unsent` stays false: it is unknown whether they sent anything.
 */
class AxiosExchange implements Exchange {
  readonly config: AxiosRequestConfig;
  #started = false;
  #opened = false;

  constructor(adapter: HttpAdapter | undefined, agents: HttpAgents, signal: AbortSignal) {
    const transport: HttpTransport = {
      request: (options, onResponse) => {
        const secure = options.protocol === 'https:';
        // The agent is set here because axios replaces agents that have a `proxyEnv` if its own proxy support is off.
        const agent = (secure ? agents.https : agents.http) ?? options.agent;
        const request = (secure ? https : http).request({ ...options, agent }, onResponse);
        this.#started = true;
        request.once('socket', (socket) => this.#watch(socket, secure));
        return request;
      },
    };
    this.config = { ...(adapter && { adapter }), transport, signal };
  }

  get unsent(): boolean {
    return this.#started && !this.#opened;
  }

  #watch(socket: Socket, secure: boolean): void {
    // A socket that is not connecting was kept alive, or an agent for a proxy has opened it.
    if (!socket.connecting) this.#opened = true;
    else socket.once(secure ? 'secureConnect' : 'connect', () => (this.#opened = true));
  }
}

type Controller = Undici.Dispatcher.DispatchController;
type Headers = Record<string, string | string[] | undefined>;

/**
 * One request through undici, as an adapter for axios. It collects the chunks of the body up to the limit, without a
 * stream unless the body is compressed. `unsent` is true until undici starts to write the request.
 */
export class UndiciExchange implements Exchange, Undici.Dispatcher.DispatchHandler {
  readonly config: AxiosRequestConfig = { adapter: (config) => this.#send(config) };
  readonly #dispatcher: Undici.Dispatcher;
  readonly #request: HttpRequest;
  readonly #received = Promise.withResolvers<ResponseBody>();
  #started = false;
  /** Set when there is a connection, before undici writes to it. */
  #controller: Controller | undefined;
  #status = 0;
  #headers: Headers = {};
  #body = new ResponseBody(0);
  #createDecoder: (() => Transform) | undefined;
  #decoder: Transform | undefined;

  constructor(dispatcher: Undici.Dispatcher, request: HttpRequest) {
    this.#dispatcher = dispatcher;
    this.#request = request;
  }

  get unsent(): boolean {
    return this.#started && !this.#controller;
  }

  async #send(config: InternalAxiosRequestConfig): Promise<AxiosResponse<ResponseBody>> {
    const { signal, method, url, body = null } = this.#request;
    const abort = (): void => this.#abort();
    signal.addEventListener('abort', abort, { once: true });
    try {
      this.#started = true;
      if (signal.aborted) this.#abort();
      else {
        const { origin, pathname, search } = new URL(url);
        const headers = config.headers.toJSON() as Record<string, string>;
        const path = pathname + search;
        this.#dispatcher.dispatch({ origin, path, method, headers, body }, this);
      }
      const data = await this.#received.promise;
      const headers = this.#headers as Record<string, string>;
      return { status: this.#status, statusText: '', headers, config, data };
    } finally {
      signal.removeEventListener('abort', abort);
    }
  }

  onRequestStart(controller: Controller): void {
    // If this throws, undici drops an aborted request from its queue, uses the connection for the next request, and
    // sends no request twice.
    if (this.#request.signal.aborted || this.#controller) throw new Error('The request is over');
    this.#controller = controller;
  }

  onResponseStart(_: Controller, status: number, headers: Headers): void {
    if (status < 200) return;
    this.#status = status;
    this.#headers = headers;
    this.#body = new ResponseBody(bodyLimit(this.#request, status));
    this.#createDecoder = decoderOf(headers['content-encoding']);
    if (this.#createDecoder) delete headers['content-encoding'];
  }

  onResponseData(controller: Controller, chunk: Buffer): void {
    if (this.#createDecoder) {
      this.#decoder ??= this.#decode(controller, this.#createDecoder());
      if (!this.#decoder.destroyed && !this.#decoder.write(chunk)) controller.pause();
    } else if (!this.#body.add(chunk)) {
      this.#received.resolve(this.#body);
      controller.abort(new Error('The response is too large'));
    }
  }

  onResponseEnd(): void {
    if (this.#decoder) this.#decoder.end();
    else this.#received.resolve(this.#body);
  }

  onResponseError(_: Controller | undefined, error: Error): void {
    if (this.#body.whole) this.#body.error = error;
    if (this.#decoder) this.#decoder.destroy(error);
    else if (this.#status) this.#received.resolve(this.#body);
    else this.#received.reject(error);
  }

  #abort(): void {
    const error = new Error('The request was aborted');
    if (this.#controller) this.#controller.abort(error);
    else this.#received.reject(error);
  }

  #decode(controller: Controller, decoder: Transform): Transform {
    decoder.on('drain', () => controller.resume());
    // The decoder closes early if the body is too large or is not encoded as its header declares.
    decoder.on('close', () => controller.abort(new Error('The response was not read to its end')));
    void readBody(decoder, bodyLimit(this.#request, this.#status)).then(this.#received.resolve);
    return decoder;
  }
}
