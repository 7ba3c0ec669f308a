import { addAbortSignal, Readable } from 'node:stream';
import type { ReadableStream } from 'node:stream/web';
import type { HttpService } from '@nestjs/axios';
import type { AxiosInstance, AxiosRequestConfig, AxiosResponse } from 'axios';
import { firstValueFrom } from 'rxjs';
import { PaymentsError } from '../../errors/payments-error.js';
import { guard } from '../../errors/unhandled-rejections.js';
import type { ResolvedApiOptions } from '../api-options.js';
import { openConnections, type Connections, type ConnectionPurpose } from './connections.js';
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
 * The axios configuration of every request. axios accepts any status, and neither parses nor limits the body. It
 * follows no redirect, because a redirect would carry the token to another host. It uses no proxy from the
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
 * Sends requests through Nest's `HttpService` over connections for one purpose. It never passes an axios error to its
 * caller, because an axios error contains the request with its credentials.
 */
export class Transport {
  readonly #options: ResolvedApiOptions;
  readonly #purpose: ConnectionPurpose;
  #opened: Promise<[HttpService, Connections]> | undefined;

  constructor(
    options: ResolvedApiOptions,
    purpose: ConnectionPurpose,
    /** Gets the rejections of promises that interceptors of the application's `HttpService` did not await. */
    private readonly onRejection: (reason: unknown) => void = () => {},
  ) {
    this.#options = options;
    this.#purpose = purpose;
  }

  /**
   * Imports axios, `@nestjs/axios` and undici at the first call, if the options need them.
   *
   * @throws PaymentsError `options_invalid` if a package is not installed
   */
  open(): Promise<[HttpService, Connections]> {
    const { http } = this.#options;
    this.#opened ??= Promise.all([
      http ?? createHttpService(),
      openConnections(this.#options, this.#purpose),
    ]).catch((error: unknown) => {
      this.#opened = undefined;
      throw explainImportError(error);
    });
    return this.#opened;
  }

  /** Sends a request. Rejects only if `open()` rejects: a request that fails resolves to an `HttpFailure`. */
  async send(request: HttpRequest): Promise<HttpResponse | HttpFailure> {
    const [http, connections] = await this.open();
    const exchange = connections.exchange(request);
    const { method, url, headers: own, body: data } = request;
    // Without `false`, axios would send a POST without a body as a form.
    const headers = { 'content-type': false, 'accept-encoding': ACCEPT_ENCODING, ...own };
    const config = { ...REQUEST, ...exchange.config, method, url, headers, data };
    try {
      const send = (): Promise<AxiosResponse<unknown>> =>
        firstValueFrom(http.request<unknown>(config as AxiosRequestConfig));
      const sent = this.#options.http ? guard(this.onRejection, send) : send();
      return await readResponse(await sent, request);
    } catch (error) {
      return failure('connection_failed', error, exchange.unsent || neverConnected(error));
    }
  }

  /** Aborts the requests under way and closes the connections. */
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

/** Replaces the error for a missing package by an error that names the command to install it. */
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

/**
 * Reads `data`, whose type depends on the adapter of axios: a `ResponseBody`, a stream of Node.js, a web stream, or any
 * value of a mock.
 */
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

/** @param fetched whether the body came from `fetch`, which decompresses it but keeps its `content-encoding` header */
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
