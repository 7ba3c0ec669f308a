import type { Readable } from 'node:stream';
import type { HttpService } from '@nestjs/axios';
import type { AxiosResponse, RawAxiosRequestHeaders } from 'axios';
import { firstValueFrom } from 'rxjs';
import type { ResolvedApiOptions } from './api.options.js';
import { ConnectionPools, type Lane } from './connection.pools.js';
import { ConnectionWatch } from './connection.watch.js';
import {
  failure,
  readAnswer,
  type HttpAnswer,
  type HttpFailure,
  type HttpRequest,
} from './http.answer.js';
import type { ReadBody } from './http.body.js';
import type { HttpWire } from './http.wire.js';
import { UndiciExchange } from './undici.exchange.js';

/**
 * Sends requests through Nest's `HttpService`, and gives what came of them as a value. No error of axios leaves
 * this file: it holds the request, and with it the credentials.
 */
export class HttpSender {
  readonly #http: HttpService;
  readonly #agents: ResolvedApiOptions['agents'];
  readonly #pools: ConnectionPools;

  constructor(http: HttpService, options: ResolvedApiOptions, lane: Lane) {
    this.#http = http;
    this.#agents = options.agents;
    this.#pools = new ConnectionPools(options, lane);
  }

  /** Never rejects. */
  async send(request: HttpRequest): Promise<HttpAnswer | HttpFailure> {
    const wire = this.#wire(request);
    let response: AxiosResponse<Readable | ReadBody>;
    try {
      response = await firstValueFrom(this.#http.request(configOf(request, wire)));
    } catch (error) {
      return failure('connection_failed', error, wire.unsent || neverConnected(error));
    }
    return readAnswer(response, request);
  }

  /** Closes its connections, with what goes on over them. Agents that were handed in stay. */
  close(): Promise<void> {
    return this.#pools.close();
  }

  #wire(request: HttpRequest): HttpWire {
    const { http, https } = this.#agents;
    return (request.url.startsWith('https:') ? https : http)
      ? new ConnectionWatch(this.#agents, request.signal)
      : new UndiciExchange(this.#pools.dispatcher, request);
  }
}

function configOf({ method, url, headers, body }: HttpRequest, wire: HttpWire) {
  return {
    ...wire.config,
    method,
    url,
    // Axios would call a POST without a body a form.
    headers: { 'content-type': false, ...headers } as RawAxiosRequestHeaders,
    data: body,
  };
}

/** For an `HttpService` that was replaced, and knows no adapter: an error of connecting says so itself. */
function neverConnected(error: unknown): boolean {
  const cause = (error as { cause?: unknown } | null)?.cause ?? error;
  const all = (cause as { errors?: unknown } | null)?.errors;
  return (Array.isArray(all) && all.length > 0 ? (all as unknown[]) : [cause]).every((one) => {
    const syscall = (one as { syscall?: unknown } | null)?.syscall;
    return syscall === 'connect' || syscall === 'getaddrinfo';
  });
}
