import type { HttpService } from '@nestjs/axios';
import type { AxiosRequestConfig } from 'axios';
import { firstValueFrom } from 'rxjs';
import type { ResolvedApiOptions } from '../api-options.js';
import { openConnections, type Connections, type ConnectionPurpose } from './connections.js';
import { ACCEPT_ENCODING } from './content-encoding.js';
import {
  failure,
  neverConnected,
  type HttpAnswer,
  type HttpFailure,
  type HttpRequest,
} from './exchange.js';
import { createHttpService, explainImportError } from './http-service.js';
import { readAnswer } from './read-answer.js';

/**
 * The same for every request: any status is an answer, and axios neither parses nor limits the body. No
 * redirect, because it would carry the token to another host. No proxy from the environment, because a proxy
 * set for something else would see the token.
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
 * Sends requests through Nest's `HttpService` over connections for one purpose. No axios error leaves this
 * file, because it contains the request with its credentials.
 */
export class Transport {
  readonly #options: ResolvedApiOptions;
  readonly #purpose: ConnectionPurpose;
  #opened: Promise<[HttpService, Connections]> | undefined;

  constructor(options: ResolvedApiOptions, purpose: ConnectionPurpose) {
    this.#options = options;
    this.#purpose = purpose;
  }

  /**
   * Loads axios, `@nestjs/axios` and undici once, as far as the options need them.
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

  /** Rejects only as `open()` does: a request that fails is a value. */
  async send(request: HttpRequest): Promise<HttpAnswer | HttpFailure> {
    const [http, connections] = await this.open();
    const exchange = connections.exchange(request);
    const { method, url, headers: own, body: data } = request;
    // Without `false`, axios would declare a POST without a body to be a form.
    const headers = { 'content-type': false, 'accept-encoding': ACCEPT_ENCODING, ...own };
    const config = { ...REQUEST, ...exchange.config, method, url, headers, data };
    try {
      const sent = http.request<unknown>(config as AxiosRequestConfig);
      return await readAnswer(await firstValueFrom(sent), request);
    } catch (error) {
      return failure('connection_failed', error, exchange.unsent || neverConnected(error));
    }
  }

  /** Closes the connections, with the requests under way. */
  async close(): Promise<void> {
    const opened = await this.#opened?.catch(() => undefined);
    await opened?.[1].close();
  }
}
