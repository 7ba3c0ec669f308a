import type { HttpService } from '@nestjs/axios';
import type { AxiosResponse, RawAxiosRequestHeaders } from 'axios';
import { firstValueFrom } from 'rxjs';
import type { Readable } from 'node:stream';
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
import type { HttpServiceSource } from './http.service.js';
import type { HttpWire } from './http.wire.js';
import { UndiciExchange } from './undici.exchange.js';

/** What is loaded with the first request, and not with the application. */
interface HttpClient {
  readonly http: HttpService;
  readonly pools: ConnectionPools;
}

/**
 * Sends requests through Nest's `HttpService`, and gives what came of them as a value. No error of axios leaves
 * this file: it holds the request, and with it the credentials.
 */
export class HttpSender {
  readonly #source: HttpServiceSource;
  readonly #options: ResolvedApiOptions;
  readonly #lane: Lane;
  #client: Promise<HttpClient> | undefined;

  constructor(source: HttpServiceSource, options: ResolvedApiOptions, lane: Lane) {
    this.#source = source;
    this.#options = options;
    this.#lane = lane;
  }

  /** Never rejects. */
  async send(request: HttpRequest): Promise<HttpAnswer | HttpFailure> {
    let wire: HttpWire | undefined;
    let response: AxiosResponse<Readable | ReadBody>;
    try {
      const { http, pools } = await this.#ready();
      if (request.signal.aborted) return failure('connection_failed', undefined, true);
      wire = this.#wire(request, pools);
      response = await firstValueFrom(http.request(configOf(request, wire)));
    } catch (error) {
      const unsent = !wire || wire.unsent || neverConnected(error);
      return failure('connection_failed', error, unsent);
    }
    return readAnswer(response, request);
  }

  /** Loads what the first request would wait for. Never rejects. */
  async prepare(): Promise<void> {
    await this.#ready().catch(() => {});
  }

  /** Closes its connections, with what goes on over them. Agents that were handed in stay. */
  async close(): Promise<void> {
    const client = await this.#client?.catch(() => undefined);
    await client?.pools.close();
  }

  #ready(): Promise<HttpClient> {
    return (this.#client ??= this.#load().catch((error: unknown) => {
      this.#client = undefined;
      throw error;
    }));
  }

  async #load(): Promise<HttpClient> {
    const [http, pools] = await Promise.all([
      this.#source(),
      ConnectionPools.open(this.#options, this.#lane),
    ]);
    return { http, pools };
  }

  #wire(request: HttpRequest, { dispatcher }: ConnectionPools): HttpWire {
    const { agents } = this.#options;
    return (request.url.startsWith('https:') ? agents.https : agents.http)
      ? new ConnectionWatch(agents, request.signal)
      : new UndiciExchange(dispatcher, request);
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
