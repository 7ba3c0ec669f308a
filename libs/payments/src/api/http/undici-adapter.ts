import type { Transform } from 'node:stream';
import type { AxiosRequestConfig, AxiosResponse, InternalAxiosRequestConfig } from 'axios';
import type { Dispatcher } from 'undici';
import { AnswerBody, readBody } from './answer-body.js';
import { decoderOf } from './content-encoding.js';
import type { Exchange, HttpRequest } from './exchange.js';
import { bodyLimit } from './read-answer.js';

type Controller = Dispatcher.DispatchController;
type Headers = Record<string, string | string[] | undefined>;

/**
 * One request over undici: an adapter for axios. It reads the body up to its limit as it arrives, without a
 * stream unless the body is compressed, and knows whether undici has begun to write the request.
 */
export class UndiciExchange implements Exchange, Dispatcher.DispatchHandler {
  readonly config: AxiosRequestConfig = { adapter: (config) => this.#send(config) };
  readonly #dispatcher: Dispatcher;
  readonly #request: HttpRequest;
  readonly #answer = Promise.withResolvers<AnswerBody>();
  #begun = false;
  /** Set when there is a connection, before undici writes to it. */
  #controller: Controller | undefined;
  #status = 0;
  #headers: Headers = {};
  #body = new AnswerBody(0);
  #createDecoder: (() => Transform) | undefined;
  #decoder: Transform | undefined;

  constructor(dispatcher: Dispatcher, request: HttpRequest) {
    this.#dispatcher = dispatcher;
    this.#request = request;
  }

  get unsent(): boolean {
    return this.#begun && !this.#controller;
  }

  async #send(config: InternalAxiosRequestConfig): Promise<AxiosResponse<AnswerBody>> {
    const { signal, method, url, body = null } = this.#request;
    const stop = (): void => this.#stop();
    signal.addEventListener('abort', stop, { once: true });
    try {
      this.#begun = true;
      if (signal.aborted) this.#stop();
      else {
        const { origin, pathname, search } = new URL(url);
        const headers = config.headers.toJSON() as Record<string, string>;
        const path = pathname + search;
        this.#dispatcher.dispatch({ origin, path, method, headers, body }, this);
      }
      const data = await this.#answer.promise;
      const headers = this.#headers as Record<string, string>;
      return { status: this.#status, statusText: '', headers, config, data };
    } finally {
      signal.removeEventListener('abort', stop);
    }
  }

  onRequestStart(controller: Controller): void {
    // An error takes a request that was aborted out of the queue and leaves the connection to the next one. It
    // also prevents undici from sending a request twice.
    if (this.#request.signal.aborted || this.#controller) throw new Error('The request is over');
    this.#controller = controller;
  }

  onResponseStart(_: Controller, status: number, headers: Headers): void {
    if (status < 200) return;
    this.#status = status;
    this.#headers = headers;
    this.#body = new AnswerBody(bodyLimit(this.#request, status));
    this.#createDecoder = decoderOf(headers['content-encoding']);
    if (this.#createDecoder) delete headers['content-encoding'];
  }

  onResponseData(controller: Controller, chunk: Buffer): void {
    if (this.#createDecoder) {
      this.#decoder ??= this.#decode(controller, this.#createDecoder());
      if (!this.#decoder.destroyed && !this.#decoder.write(chunk)) controller.pause();
    } else if (!this.#body.add(chunk)) {
      this.#answer.resolve(this.#body);
      controller.abort(new Error('The answer is too large'));
    }
  }

  onResponseEnd(): void {
    if (this.#decoder) this.#decoder.end();
    else this.#answer.resolve(this.#body);
  }

  onResponseError(_: Controller | undefined, error: Error): void {
    if (this.#body.whole) this.#body.error = error;
    if (this.#decoder) this.#decoder.destroy(error);
    else if (this.#status) this.#answer.resolve(this.#body);
    else this.#answer.reject(error);
  }

  #stop(): void {
    const error = new Error('The request was aborted');
    if (this.#controller) this.#controller.abort(error);
    else this.#answer.reject(error);
  }

  #decode(controller: Controller, decoder: Transform): Transform {
    decoder.on('drain', () => controller.resume());
    // It closes early if the body is too large or not what its encoding says.
    decoder.on('close', () => controller.abort(new Error('The answer was not read to its end')));
    void readBody(decoder, bodyLimit(this.#request, this.#status)).then(this.#answer.resolve);
    return decoder;
  }
}
