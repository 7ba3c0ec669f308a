import http from 'node:http';
import https from 'node:https';
import type { Readable } from 'node:stream';
import type { HttpService } from '@nestjs/axios';
import type { AxiosResponse, RawAxiosRequestHeaders } from 'axios';
import { firstValueFrom } from 'rxjs';
import type { ResolvedApiOptions } from './api.options.js';
import { ConnectionWatch } from './connection.watch.js';
import {
  failure,
  readAnswer,
  type HttpAnswer,
  type HttpFailure,
  type HttpRequest,
} from './http.answer.js';
import { paymentsHttpModuleOptions } from './http.config.js';

/**
 * How long an idle connection is kept, in milliseconds: under the 5 s after which the commonest servers close
 * theirs, so that a request seldom meets a connection that is just being closed. For a POST that would be an
 * unknown outcome.
 */
const IDLE_MS = 4_000;

/**
 * Sends requests through Nest's `HttpService`, and gives what came of them as a value. No error of axios leaves
 * this file: it holds the request, and with it the credentials.
 */
export class HttpSender {
  readonly #http: HttpService;
  readonly #agents: { http: http.Agent; https: https.Agent };
  readonly #own: (http.Agent | https.Agent)[] = [];

  /** @param lane `token`: connections of its own, so that it never waits behind calls */
  constructor(http_: HttpService, options: ResolvedApiOptions, lane: 'calls' | 'token') {
    this.#http = http_;
    const settings =
      lane === 'calls'
        ? { keepAlive: true, maxSockets: options.maxSockets, timeout: IDLE_MS }
        : { keepAlive: false };
    const keep = <A extends http.Agent | https.Agent>(agent: A): A => {
      this.#own.push(agent);
      return agent;
    };
    this.#agents = {
      http: options.agents.http ?? keep(new http.Agent(settings)),
      https: options.agents.https ?? keep(new https.Agent(settings)),
    };
  }

  /** Never rejects. */
  async send(request: HttpRequest): Promise<HttpAnswer | HttpFailure> {
    const watch = new ConnectionWatch();
    let response: AxiosResponse<Readable>;
    try {
      response = await firstValueFrom(this.#http.request<Readable>(this.#config(request, watch)));
    } catch (error) {
      return failure('connection_failed', error, watch.unsent || neverConnected(error));
    }
    return readAnswer(response, request);
  }

  /** Closes its connections, with what goes on over them. Agents that were handed in stay. */
  close(): void {
    for (const agent of this.#own) agent.destroy();
  }

  #config({ method, url, headers, body, signal }: HttpRequest, watch: ConnectionWatch) {
    return {
      ...paymentsHttpModuleOptions(),
      method,
      url,
      // Axios would call a POST without a body a form.
      headers: { 'content-type': false, ...headers } as RawAxiosRequestHeaders,
      data: body,
      signal,
      httpAgent: this.#agents.http,
      httpsAgent: this.#agents.https,
      transport: watch.transport,
    };
  }
}

/** For an `HttpService` that was replaced, and knows no transport: an error of connecting says so itself. */
function neverConnected(error: unknown): boolean {
  const cause = (error as { cause?: unknown } | null)?.cause ?? error;
  const all = (cause as { errors?: unknown } | null)?.errors;
  return (Array.isArray(all) && all.length > 0 ? (all as unknown[]) : [cause]).every((one) => {
    const syscall = (one as { syscall?: unknown } | null)?.syscall;
    return syscall === 'connect' || syscall === 'getaddrinfo';
  });
}
