import http from 'node:http';
import https from 'node:https';
import type { Socket } from 'node:net';
import { addAbortSignal, pipeline, Readable, type Transform } from 'node:stream';
import type * as Undici from 'undici';
import type { HttpAgents, ResolvedApiOptions } from './api-options.js';
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

type HttpResult = HttpResponse | HttpFailure;

/**
 * Sends requests with the client that the option `adapter` selects. No client follows a redirect, because a redirect
 * would carry the token to another host. No client reads the proxy settings of the environment, because a proxy that is
 * set for other traffic would see the token. Only `fetch` reads these settings, if Node.js was started with
 * `NODE_USE_ENV_PROXY=1`.
 *
 * Each instance sends either calls or token requests, so calls and token requests use separate connections.
 */
export class Transport {
  #client: Promise<HttpClient> | undefined;

  constructor(
    private readonly options: ResolvedApiOptions,
    private readonly purpose: ConnectionPurpose,
  ) {}

  /**
   * Sends a request. Resolves with an `HttpFailure` if the request fails. The first request imports undici, if the
   * option `adapter` selects undici.
   */
  async send(request: HttpRequest): Promise<HttpResult> {
    this.#client ??= openClient(this.options, this.purpose);
    const headers = { 'accept-encoding': ACCEPT_ENCODING, ...request.headers };
    return (await this.#client).send({ ...request, headers });
  }

  async close(): Promise<void> {
    await (await this.#client)?.close();
  }
}

/** Purpose of a connection. Each token request opens a new connection, so that it never waits for a call. */
export type ConnectionPurpose = 'calls' | 'token';

interface HttpClient {
  /** Never rejects. */
  send(request: HttpRequest): Promise<HttpResult>;
  /** Closes the connections, except those of agents and dispatchers that the application passed in. */
  close(): Promise<void>;
}

/**
 * How long an idle connection is kept open, in milliseconds. Common servers close idle connections after 5 s, and a
 * POST on a connection that is being closed has an unknown outcome. A limit below 5 s makes such outcomes rare.
 */
const IDLE_MS = 4_000;
/**
 * Milliseconds by which the time limit for opening a connection is longer than the time limit of the request, so that
 * the request times out first.
 */
const CONNECT_GRACE_MS = 1_000;

async function openClient(
  options: ResolvedApiOptions,
  purpose: ConnectionPurpose,
): Promise<HttpClient> {
  const { adapter, dispatcher } = options;
  if (adapter === 'fetch') return { send: sendWithFetch, close: async () => {} };
  if (adapter === 'http') return nodeClient(options, purpose);
  if (!dispatcher) return undiciClient(await import('undici'), options, purpose);
  return {
    send: (request) => new UndiciExchange(dispatcher, request).send(),
    close: async () => {},
  };
}

function undiciClient(
  { Agent, buildConnector }: typeof Undici,
  options: ResolvedApiOptions,
  purpose: ConnectionPurpose,
): HttpClient {
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
    // undici's own time limits are off, because the signal of each request limits its time.
    headersTimeout: 0,
    bodyTimeout: 0,
    connect: (to, callback) => {
      const socket = connector(to, callback) as unknown as Socket;
      sockets.add(socket);
      socket.once('close', () => sockets.delete(socket));
    },
  });
  return {
    send: (request) => new UndiciExchange(agent, request).send(),
    close: async () => {
      const closed = agent.destroy();
      // undici does not close a connection that is being opened, and such a connection would keep the process alive.
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

function nodeClient(options: ResolvedApiOptions, purpose: ConnectionPurpose): HttpClient {
  const keepAlive = { keepAlive: true, maxSockets: options.maxSockets, timeout: IDLE_MS };
  const agentOptions: http.AgentOptions = purpose === 'calls' ? keepAlive : {};
  const agents = { http: new http.Agent(agentOptions), https: new https.Agent(agentOptions) };
  const used = { ...agents, ...options.agents };
  return {
    // An agent of the application may throw.
    send: (request) =>
      sendWithNode(request, used).catch((error: unknown) =>
        failure('connection_failed', error, true),
      ),
    close: async () => {
      for (const agent of [agents.http, agents.https]) {
        // When a connection closes, Node.js would open another one for the waiting requests, although these requests
        // are aborted.
        agent.createConnection = (_, callback) => {
          callback?.(new Error('The agent is closed'), undefined!);
          return null;
        };
        agent.destroy();
      }
    },
  };
}

/**
 * Sends a request with `node:http`. The request counts as unsent until the connection is open (for https: until the TLS
 * handshake is done).
 */
function sendWithNode(request: HttpRequest, agents: Required<HttpAgents>): Promise<HttpResult> {
  const { method, url, body, signal } = request;
  // Node.js itself adds no `Content-Length` to a DELETE with a body.
  const headers = { ...request.headers, ...(body && { 'content-length': body.length }) };
  const secure = url.startsWith('https:');
  const opened = secure ? 'secureConnect' : 'connect';
  return new Promise((resolve) => {
    let open = false;
    const outgoing = secure
      ? https.request(url, { method, headers, agent: agents.https })
      : http.request(url, { method, headers, agent: agents.http });
    // With the option `signal`, Node.js would report an abort only when the request gets a connection.
    const abort = (): void => {
      resolve(failure('connection_failed', undefined, !open));
      outgoing.destroy();
    };
    if (signal.aborted) abort();
    else signal.addEventListener('abort', abort, { once: true });
    outgoing.once('socket', (socket) => {
      // A socket that is not connecting is open already: it was kept alive, or an agent for a proxy has opened it.
      if (!socket.connecting) open = true;
      else socket.once(opened, () => (open = true));
    });
    // The socket of an application's agent may emit neither `connect` nor `secureConnect`.
    outgoing.once('finish', () => (open = true));
    outgoing.on('error', (error) =>
      resolve(failure('connection_failed', error, !open || neverConnected(error))),
    );
    outgoing.once('response', (incoming) => {
      signal.removeEventListener('abort', abort);
      const { statusCode = 0 } = incoming;
      const received = plainHeaders(incoming.headers);
      const createDecoder = decoderOf(received['content-encoding']);
      if (createDecoder) delete received['content-encoding'];
      const stream =
        createDecoder && mayHaveBody(method, statusCode, received['content-length'])
          ? pipeline(incoming, createDecoder(), () => {})
          : incoming;
      resolve(readResponse(request, statusCode, received, stream));
    });
    outgoing.end(body);
  });
}

function mayHaveBody(method: string, status: number, length: string | undefined): boolean {
  return method !== 'HEAD' && status !== 204 && status !== 304 && length !== '0';
}

/**
 * Sends a request with `fetch`, which does not report whether it has sent anything, except for errors of DNS and
 * `connect`.
 */
async function sendWithFetch(request: HttpRequest): Promise<HttpResult> {
  const { method, url, headers, body = null, signal } = request;
  try {
    const response = await fetch(url, { method, headers, body, signal, redirect: 'manual' });
    const received = plainHeaders(Object.fromEntries(response.headers));
    // `fetch` decompresses the body, but does not remove the header `content-encoding`.
    if (decoderOf(received['content-encoding'])) delete received['content-encoding'];
    const stream = response.body ? Readable.fromWeb(response.body) : Readable.from([]);
    return await readResponse(request, response.status, received, stream);
  } catch (error) {
    return failure('connection_failed', error, neverConnected(error));
  }
}

/** Reads the body of a response. Never rejects. */
async function readResponse(
  request: HttpRequest,
  status: number,
  headers: Record<string, string>,
  stream: Readable,
): Promise<HttpResult> {
  const limit = bodyLimit(request, status);
  const body = await readBody(addAbortSignal(request.signal, stream), limit);
  return resultOf(status, headers, body);
}

function resultOf(
  status: number,
  headers: Record<string, string>,
  { bytes, whole, error }: ResponseBody,
): HttpResult {
  const success = isSuccess(status);
  if (success && error !== undefined) {
    const reason = isDecompression(error) ? 'response_invalid' : 'connection_failed';
    return failure(reason, error, false, status);
  }
  if (success && !whole) return failure('response_too_large', undefined, false, status);
  // A response with a status other than 2xx is not a failure, even if its body cannot be read.
  const body = error === undefined ? bytes : Buffer.alloc(0);
  return { kind: 'response', status, headers, body };
}

function isDecompression(error: unknown): boolean {
  return /^(?:Z_|ERR_ZLIB|ERR__?BROTLI|ERR__ERROR_|ZSTD)/.test(errorCode(error) ?? '');
}

type Headers = Record<string, string | string[] | undefined>;

/** Returns the headers as an object without a prototype, with names in lower case. */
function plainHeaders(headers: Headers): Record<string, string> {
  const plain: Record<string, string> = Object.create(null) as Record<string, string>;
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined) plain[name.toLowerCase()] = [value].flat().join(', ');
  }
  return plain;
}

type Controller = Undici.Dispatcher.DispatchController;

/**
 * One request through undici. The exchange collects the chunks of the response body up to the limit, and uses a stream
 * only if the body is compressed. The request counts as unsent until undici starts to write it.
 */
export class UndiciExchange implements Undici.Dispatcher.DispatchHandler {
  readonly #received = Promise.withResolvers<ResponseBody>();
  /**
   * undici's controller of the request. undici passes it when the request has a connection, before undici writes the
   * request.
   */
  #controller: Controller | undefined;
  #status = 0;
  #headers: Headers = {};
  #body = new ResponseBody(0);
  #createDecoder: (() => Transform) | undefined;
  #decoder: Transform | undefined;

  readonly #dispatcher: Undici.Dispatcher;
  // This field is private, because undici passes the exchange to the application's dispatcher.
  readonly #request: HttpRequest;

  constructor(dispatcher: Undici.Dispatcher, request: HttpRequest) {
    this.#dispatcher = dispatcher;
    this.#request = request;
  }

  /** Sends the request. Call this method once. Never rejects. */
  async send(): Promise<HttpResult> {
    const { signal, method, url, headers, body = null } = this.#request;
    const abort = (): void => this.#abort();
    signal.addEventListener('abort', abort, { once: true });
    try {
      if (signal.aborted) abort();
      else {
        const { origin, pathname, search } = new URL(url);
        const path = pathname + search;
        this.#dispatcher.dispatch({ origin, path, method, headers, body }, this);
      }
      const received = await this.#received.promise;
      return resultOf(this.#status, plainHeaders(this.#headers), received);
    } catch (error) {
      return failure('connection_failed', error, !this.#controller || neverConnected(error));
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
