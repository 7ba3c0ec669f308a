import type { IncomingMessage, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { Inject, Injectable } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { RECEIVE_OPTIONS } from '../inbox/inbox.tokens.js';
import type { ResolvedReceiveOptions } from '../inbox/receive.options.js';
import { PaymentsError } from '../payments.errors.js';
import { PAYMENTS_RUNTIME } from '../payments.runtime.js';
import type { PaymentsRuntime } from '../payments.runtime.js';
import { headerText } from './header-text.js';
import { readRawBody, requirePlainJson } from './raw-body.js';
import { givenBytes, RawBodies, RawBody } from './raw-bodies.js';
import { RefusalLog } from './refusal-log.js';
import { answerError, sendAnswer } from './webhook.answer.js';
import type { WebhookAnswer } from './webhook.answer.js';
import { WebhookRoutes } from './webhook.routes.js';
import type { ResolvedWebhookOptions } from './webhook.options.js';
import { WEBHOOK_OPTIONS } from './webhook.tokens.js';

/** What this file needs of a Fastify instance, request and reply; the package does not depend on Fastify. */
interface FastifyLike {
  addHook(name: 'onRoute', hook: (route: FastifyRoute) => void): void;
}
interface FastifyRoute {
  method: string | string[];
  url: string;
  bodyLimit?: number;
  preParsing?: unknown;
}
interface FastifyRequestLike {
  readonly raw: IncomingMessage & { readonly rawBody?: unknown; readonly body?: unknown };
  readonly rawBody?: unknown;
}
interface FastifyReplyLike {
  code(status: number): FastifyReplyLike;
  header(name: string, value: string): FastifyReplyLike;
  send(body: unknown): FastifyReplyLike;
}
/** What Express and body parsers add to Node's request: the path is without the query, whatever the request line. */
interface ExpressRequestLike extends IncomingMessage {
  readonly path: string;
  readonly rawBody?: unknown;
  readonly body?: unknown;
}

/** The JSON of an empty object, in place of a body that was read. */
class EmptyObject extends Readable {
  constructor(
    /** What Fastify takes for the length that came. */
    readonly receivedEncodedLength: number,
  ) {
    super({ autoDestroy: false, emitClose: false });
  }

  override _read(): void {
    this.push('{}');
    this.push(null);
  }
}

/** For how long a sender that was refused may go on sending before its connection is closed. */
const LINGER_MS = 5000;

/**
 * Reads the bytes of deliveries before any parser sees them, on their routes alone; every other route keeps
 * its body as it was. It mounts itself as soon as the HTTP adapter is there, because Nest mounts its own JSON
 * parser before the middleware of any module.
 */
@Injectable()
export class RawBodyMiddleware {
  constructor(
    @Inject(HttpAdapterHost) host: HttpAdapterHost,
    @Inject(WebhookRoutes) private readonly routes: WebhookRoutes,
    @Inject(RawBodies) private readonly rawBodies: RawBodies,
    @Inject(RefusalLog) private readonly refusals: RefusalLog,
    @Inject(PAYMENTS_RUNTIME) private readonly runtime: PaymentsRuntime,
    @Inject(WEBHOOK_OPTIONS) private readonly options: ResolvedWebhookOptions,
    @Inject(RECEIVE_OPTIONS) private readonly receive: ResolvedReceiveOptions,
  ) {
    host.init$.subscribe(() => {
      const adapter: HttpAdapterHost['httpAdapter'] | null = host.httpAdapter;
      // Absent in an application without HTTP.
      if (!adapter) return;
      if (adapter.getType() === 'fastify') this.#mountOnFastify(adapter.getInstance<FastifyLike>());
      else adapter.use(this.#onExpress);
    });
  }

  // An instance field, so that its name is not one Nest takes for a parser of its own.
  readonly #onExpress = (
    request: ExpressRequestLike,
    response: ServerResponse,
    next: () => void,
  ): void => {
    if (request.method !== 'POST' || !this.routes.matches(request.path)) {
      next();
      return;
    }
    void this.#keep(request, request, request).then((refusal) => {
      if (refusal === null) next();
      else sendAnswer(response, refusal);
    });
  };

  #mountOnFastify(instance: FastifyLike): void {
    instance.addHook('onRoute', (route) => {
      if (![route.method].flat().includes('POST') || !this.routes.paths().includes(route.url))
        return;
      route.bodyLimit = this.options.bodyLimitBytes;
      route.preParsing = [route.preParsing ?? []].flat().concat(this.#onFastify);
    });
  }

  readonly #onFastify = async (
    request: FastifyRequestLike,
    reply: FastifyReplyLike,
    payload: Readable,
  ): Promise<unknown> => {
    if (request.raw.method !== 'POST') return payload;
    // A hook may have left the bytes on Fastify's request, and an adapter of a serverless platform on Node's.
    const { raw, rawBody = raw.rawBody } = request;
    const refusal = await this.#keep(raw, payload, { rawBody, body: raw.body });
    if (refusal !== null) {
      const { status, body: told, retryAfterSeconds } = refusal;
      if (retryAfterSeconds !== undefined) reply.header('retry-after', `${retryAfterSeconds}`);
      return reply.code(status).send(told);
    }
    if (this.rawBodies.get(raw) === undefined) this.rawBodies.set(raw, null);
    // Fastify's parser must not judge bytes that are not verified yet, nor wait for a stream that has ended, so
    // it is given an empty object. It compares the length it is told of here with Content-Length, and takes a
    // length of 0 for one that was not told.
    const { headers } = raw;
    const length = Number(headerText(headers['content-length'])) || 0;
    if (length === 0) delete headers['content-length'];
    else headers['content-length'] = String(length);
    // It reads the type as one string.
    headers['content-type'] = [headers['content-type']].flat()[0];
    return new EmptyObject(length);
  };

  /** Reads and keeps the body. Resolves with what to answer at once where it is refused; never rejects. */
  async #keep(
    request: IncomingMessage,
    body: Readable,
    given: Parameters<typeof givenBytes>[0],
  ): Promise<WebhookAnswer | null> {
    const arrivedAt = this.runtime.monotonic();
    let cancel = (): void => {};
    try {
      requirePlainJson(request.headers);
      // Something else has read it, or there is no stream.
      if (body.readableDidRead || typeof body.on !== 'function') {
        const bytes = givenBytes(given, this.options.bodyLimitBytes);
        if (bytes !== undefined) this.rawBodies.set(request, new RawBody(bytes, arrivedAt));
        return null;
      }
      const reading = readRawBody(body, request.headers, this.options.bodyLimitBytes);
      cancel = this.runtime.schedule(this.receive.deadlineMs, () => reading.end(tooLate()));
      this.rawBodies.set(request, new RawBody(await reading.bytes, arrivedAt));
      return null;
    } catch (error) {
      this.#letLinger(request);
      const refusal = answerError(error);
      if (refusal.status < 500) this.refusals.note(error);
      return refusal;
    } finally {
      cancel();
    }
  }

  /**
   * Node throws away what a refused sender still sends, so that it comes to read its answer (a connection closed
   * at once would lose it). This closes the connection of one that does not stop.
   */
  #letLinger(request: IncomingMessage): void {
    // A request that a serverless adapter made may have no connection.
    const socket = request.socket as Partial<IncomingMessage['socket']> | null | undefined;
    if (request.destroyed || typeof socket?.destroy !== 'function') return;
    const cancel = this.runtime.schedule(LINGER_MS, () => request.destroy());
    request.once('close', cancel);
  }
}

function tooLate(): PaymentsError {
  return new PaymentsError('deadline_passed', 'The body of the delivery did not arrive in time.');
}
