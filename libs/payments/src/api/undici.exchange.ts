import { pipeline, Readable, type Transform } from 'node:stream';
import type { AxiosAdapter, AxiosRequestConfig } from 'axios';
import type { Dispatcher } from 'undici';
import { bodyLimit, type HttpRequest } from './http.answer.js';
import { CappedBody, readCapped, type ReadBody } from './http.body.js';
import { ACCEPTED_CODINGS, decoderOf } from './http.coding.js';
import { WHOLE_ANSWERS } from './http.config.js';
import type { HttpWire } from './http.wire.js';

type Controller = Dispatcher.DispatchController;
type Headers = Record<string, string | string[] | undefined>;

/**
 * One request over undici: an adapter for axios, and what undici tells of how the request goes. In place of a
 * stream it gives axios the body as it was read, up to its limit.
 */
export class UndiciExchange implements HttpWire, Dispatcher.DispatchHandler {
  readonly #dispatcher: Dispatcher;
  readonly #request: HttpRequest;
  #resolve!: (body: ReadBody) => void;
  #reject!: (error: unknown) => void;
  #begun = false;
  /** Given when there is a connection, and before anything is written to it. */
  #controller: Controller | undefined;
  #status = 0;
  #headers: Headers = {};
  #body = new CappedBody(0);
  #decoder: (() => Transform) | undefined;
  #compressed: Readable | undefined;

  constructor(dispatcher: Dispatcher, request: HttpRequest) {
    this.#dispatcher = dispatcher;
    this.#request = request;
  }

  get config(): AxiosRequestConfig {
    return { ...WHOLE_ANSWERS, adapter: this.#adapter };
  }

  get unsent(): boolean {
    return this.#begun && !this.#controller;
  }

  readonly #adapter: AxiosAdapter = async (config) => {
    const { signal, method, url, body } = this.#request;
    const stop = (): void => this.#stop();
    signal.addEventListener('abort', stop, { once: true });
    try {
      const data = await new Promise<ReadBody>((resolve, reject) => {
        this.#resolve = resolve;
        this.#reject = reject;
        this.#begun = true;
        if (signal.aborted) return stop();
        const { origin, pathname, search } = new URL(url);
        const headers = wireHeaders(this.#request);
        const path = pathname + search;
        this.#dispatcher.dispatch({ origin, path, method, headers, body: body ?? null }, this);
      });
      const headers = this.#headers as Record<string, string>;
      return { status: this.#status, statusText: '', headers, config, data };
    } finally {
      signal.removeEventListener('abort', stop);
    }
  };

  onRequestStart(controller: Controller): void {
    // To throw takes the request out of its queue and leaves the connection to the next: nobody waits for this
    // one any more. Nor is one ever sent twice without its caller.
    if (this.#request.signal.aborted || this.#controller) throw new Error('The request is over');
    this.#controller = controller;
  }

  onResponseStart(_: Controller, status: number, headers: Headers): void {
    if (status < 200) return;
    this.#status = status;
    this.#headers = headers;
    this.#body = new CappedBody(bodyLimit(this.#request, status));
    this.#decoder = decoderOf(headers['content-encoding']);
    if (this.#decoder) delete headers['content-encoding'];
  }

  onResponseData(controller: Controller, chunk: Buffer): void {
    if (this.#decoder) {
      this.#compressed ??= this.#decompress(controller, this.#decoder());
      if (!this.#compressed.push(chunk)) controller.pause();
    } else if (!this.#body.add(chunk)) {
      this.#resolve(this.#body.read());
      controller.abort(new Error('The rest of the answer is not wanted'));
    }
  }

  onResponseEnd(): void {
    if (this.#compressed) this.#compressed.push(null);
    else this.#resolve(this.#body.read());
  }

  onResponseError(_: Controller | undefined, error: Error): void {
    if (this.#compressed) this.#compressed.destroy(error);
    else if (this.#status) this.#resolve(this.#body.read(error));
    else this.#reject(error);
  }

  #stop(): void {
    const error = new Error('The request was ended');
    if (this.#controller) this.#controller.abort(error);
    else this.#reject(error);
  }

  /** A stream for the compressed bytes, which are taken as fast as they are decompressed. */
  #decompress(controller: Controller, decoder: Transform): Readable {
    const compressed = new Readable({
      read: () => controller.resume(),
      destroy: (error, done) => {
        controller.abort(error ?? new Error('The rest of the answer is not wanted'));
        done(error);
      },
    });
    const plain = pipeline(compressed, decoder, () => {});
    void readCapped(plain, bodyLimit(this.#request, this.#status)).then(this.#resolve);
    return compressed;
  }
}

/** Not axios's: what an application has set for all its requests is not for this one. */
function wireHeaders({ headers }: HttpRequest): Record<string, string> {
  const sent: Record<string, string> = { 'accept-encoding': ACCEPTED_CODINGS };
  for (const [name, value] of Object.entries(headers)) if (value !== false) sent[name] = value;
  return sent;
}
