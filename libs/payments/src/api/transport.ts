import http, { type ClientRequest, type IncomingMessage, type RequestOptions } from 'node:http';
import https from 'node:https';
import type { Socket } from 'node:net';
import { addAbortSignal, Readable, type Transform } from 'node:stream';
import type { ReadableStream } from 'node:stream/web';
import type { HttpService } from '@nestjs/axios';
import type {
  AxiosInstance,
  AxiosRequestConfig,
  AxiosResponse,
  InternalAxiosRequestConfig,
} from 'axios';
import { firstValueFrom } from 'rxjs';
import type * as Undici from 'undici';
import { PaymentsError } from '../errors/payments-error.js';
import { guard } from '../errors/unhandled-rejections.js';
import type { HttpAdapter, HttpAgents, ResolvedApiOptions } from './api-options.js';
import {
  ACCEPT_ENCODING,
  bodyLimit,
  decoderOf,
  errorCode,
  failure,
  isSuccess,
  neverConnected,
  readBody,
  ResponseBody,
  type HttpFailure,
  type HttpRequest,
  type HttpResponse,
} from './http-exchange.js';

/**
 * The axios configuration of every request. axios accepts any status, and neither parses nor limits the body. axios
 * follows no redirect, because a redirect would carry the token to another host. axios uses no proxy from the
 * environment, because a proxy that is set for other traffic would see the token.
 */
const REQUEST: AxiosRequestConfig = Object.freeze({
  responseType: 'stream',
  validateStatus: () => true,
  transformRequest: [],
  transformResponse: [],
  maxRedirects: 0,
  fetchOptions: { redirect: 'manual' },
  proxy: false,
  timeout: 0,
  decompress: true,
  maxContentLength: -1,
  maxBodyLength: -1,
});

/**
 * Sends requests through Nest's `HttpService`. An instance sends either calls or token requests, so these two have
 * separate connections. A `Transport` never passes an axios error to its caller, because an axios error contains the
 * request with its credentials.
 */
export class Transport {
  #opened: Promise<[HttpService, Connections]> | undefined;

  constructor(
    private readonly options: ResolvedApiOptions,
    private readonly purpose: ConnectionPurpose,
    /** Called if an interceptor of the application's `HttpService` did not await a promise and the promise rejects. */
    private readonly onRejection: (reason: unknown) => void = () => {},
  ) {}

  /**
   * Imports axios, `@nestjs/axios` and undici at the first call, if the options need them.
   *
   * @throws PaymentsError `options_invalid` if a package is not installed
   */
  open(): Promise<[HttpService, Connections]> {
    this.#opened ??= Promise.all([
      this.options.http ?? createHttpService(),
      openConnections(this.options, this.purpose),
    ]).catch((error: unknown) => {
      this.#opened = undefined;
      throw explainImportError(error);
    });
    return this.#opened;
  }

  /** Sends a request. If the request fails, resolves to an `HttpFailure`. Rejects only if `open()` rejects. */
  async send(request: HttpRequest): Promise<HttpResponse | HttpFailure> {
    const [service, connections] = await this.open();
    const exchange = connections.exchange(request);
    const { method, url, headers: own, body: data } = request;
    // Without `false`, axios would send a POST without a body as a form.
    const headers = { 'content-type': false, 'accept-encoding': ACCEPT_ENCODING, ...own };
    const config = { ...REQUEST, ...exchange.config, method, url, headers, data };
    try {
      const send = (): Promise<AxiosResponse<unknown>> =>
        firstValueFrom(service.request<unknown>(config as AxiosRequestConfig));
      const sent = this.options.http ? guard(this.onRejection, send) : send();
      return await readResponse(await sent, request);
    } catch (error) {
      return failure('connection_failed', error, exchange.unsent || neverConnected(error));
    }
  }

  async close(): Promise<void> {
    const opened = await this.#opened?.catch(() => undefined);
    await opened?.[1].close();
  }
}

/**
 * Creates an `HttpService` on an axios instance without defaults and interceptors, because interceptors that an
 * application adds to the global axios must not see tokens.
 */
async function createHttpService(): Promise<HttpService> {
  const [{ HttpService }, { Axios }] = await Promise.all([
    import('@nestjs/axios'),
    import('axios'),
  ]);
  const axios = new Axios({});
  return new HttpService({ request: axios.request.bind(axios) } as AxiosInstance);
}

function explainImportError(error: unknown): unknown {
  const { code, message } = error as { code?: unknown; message?: unknown };
  if (code !== 'ERR_MODULE_NOT_FOUND' && code !== 'MODULE_NOT_FOUND') return error;
  const name = /'([^']+)'/.exec(String(message))?.[1] ?? '@nestjs/axios axios';
  return new PaymentsError(
    'options_invalid',
    `Calling the payments service needs the package '${name}', which is not installed: npm install ${name}`,
  );
}

/** Reads the body of an axios response. Never rejects. */
async function readResponse(
  { status, headers, data }: AxiosResponse<unknown>,
  request: HttpRequest,
): Promise<HttpResponse | HttpFailure> {
  const { bytes, whole, error } = await readData(data, bodyLimit(request, status), request.signal);
  const success = isSuccess(status);
  if (success && error !== undefined) {
    const reason = isDecompression(error) ? 'response_invalid' : 'connection_failed';
    return failure(reason, error, false, status);
  }
  if (success && !whole) return failure('response_too_large', undefined, false, status);
  // A status other than 2xx is a result, even if its body cannot be read.
  const body = error === undefined ? bytes : Buffer.alloc(0);
  return { kind: 'response', status, headers: plainHeaders(headers, isWebStream(data)), body };
}

/** The type of `data` depends on the adapter of axios. A mock may return any value. */
async function readData(data: unknown, limit: number, signal: AbortSignal): Promise<ResponseBody> {
  if (data instanceof ResponseBody) return data;
  const stream = isWebStream(data) ? Readable.fromWeb(data) : data;
  if (stream instanceof Readable) return readBody(addAbortSignal(signal, stream), limit);
  const body = new ResponseBody(limit);
  if (data instanceof Uint8Array) body.add(data);
  else if (typeof data === 'string') body.add(Buffer.from(data));
  else if (data !== undefined && data !== null) body.add(Buffer.from(JSON.stringify(data)));
  return body;
}

function isWebStream(data: unknown): data is ReadableStream {
  return typeof (data as ReadableStream | null | undefined)?.getReader === 'function';
}

function isDecompression(error: unknown): boolean {
  return /^(?:Z_|ERR_ZLIB|ERR__?BROTLI|ERR__ERROR_|ZSTD)/.test(errorCode(error) ?? '');
}

/**
 * Returns the headers as an object without a prototype, with names in lower case.
 *
 * @param fetched whether the body came from `fetch`, which decompresses it but keeps its `content-encoding` header
 */
function plainHeaders(
  headers: Partial<AxiosResponse['headers']> | undefined,
  fetched: boolean,
): Record<string, string> {
  const plain: Record<string, string> = Object.create(null) as Record<string, string>;
  for (const [name, value] of Object.entries(headers ?? {})) {
    if (typeof value === 'string') plain[name.toLowerCase()] = value;
    else if (Array.isArray(value)) plain[name.toLowerCase()] = value.join(', ');
  }
  if (fetched && decoderOf(plain['content-encoding'])) delete plain['content-encoding'];
  return plain;
}

/** For `token`, every request opens a new connection, so that it never waits for a call. */
export type ConnectionPurpose = 'calls' | 'token';

/** One request on its way through an adapter of axios. */
interface Exchange {
  /** The part of the axios configuration that selects and controls the adapter. */
  readonly config: AxiosRequestConfig;
  /** Whether it is certain that no byte of the request was sent. */
  readonly unsent: boolean;
}

interface Connections {
  exchange(request: HttpRequest): Exchange;
  /** Closes the connections, except those of agents and dispatchers that the application passed in. */
  close(): Promise<void>;
}

/**
 * How long an idle connection is kept, in milliseconds. Common servers close idle connections after 5 s, and a POST on
 * a connection that is being closed has an unknown outcome. A limit below 5 s makes such outcomes rare.
 */
const IDLE_MS = 4_000;
/** Added to the time limit of a request for opening its connection, so that the request times out first. */
const CONNECT_GRACE_MS = 1_000;

async function openConnections(
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
      // undici does not close a connection that is being opened, and such a connection would keep the process alive.
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
 * Other adapters ignore the replaced transport. For these adapters, `unsent` stays false, because it is unknown whether
 * they sent anything.
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
    // A socket that is not connecting is open already: it was kept alive, or an agent for a proxy has opened it.
    if (!socket.connecting) this.#opened = true;
    else socket.once(secure ? 'secureConnect' : 'connect', () => (this.#opened = true));
  }
}

type Controller = Undici.Dispatcher.DispatchController;
type Headers = Record<string, string | string[] | undefined>;

/**
 * One request through undici, as an adapter for axios. The exchange collects the chunks of the body up to the limit,
 * and uses a stream only if the body is compressed. `unsent` is true until undici starts to write the request.
 */
export class UndiciExchange implements Exchange, Undici.Dispatcher.DispatchHandler {
  readonly config: AxiosRequestConfig = { adapter: (config) => this.#send(config) };
  readonly #received = Promise.withResolvers<ResponseBody>();
  #started = false;
  /** undici's controller of the request. Set when there is a connection, before undici writes to it. */
  #controller: Controller | undefined;
  #status = 0;
  #headers: Headers = {};
  #body = new ResponseBody(0);
  #createDecoder: (() => Transform) | undefined;
  #decoder: Transform | undefined;

  readonly #dispatcher: Undici.Dispatcher;
  // Private, because undici passes this object to the application's dispatcher.
  readonly #request: HttpRequest;

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
    // Because of this error, undici drops an aborted request from its queue, uses the connection for the next request,
    // and sends no request twice.
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
