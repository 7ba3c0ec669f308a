import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Readable } from 'node:stream';
import { Inject, Injectable } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { PaymentsError } from '../errors/payments-error.js';
import { beforeBodyParsers, emptyFastifyBody } from '../nest-internals.js';
import { PAYMENTS_RUNTIME } from '../runtime/payments-runtime.js';
import type { PaymentsRuntime } from '../runtime/payments-runtime.js';
import { Admission, companyOf } from './admission.js';
import { headerText } from './request-headers.js';
import { discardBody } from './discard-body.js';
import { PendingRequests } from './pending-requests.js';
import { RejectionLog } from './rejection-log.js';
import { answerError, sendAnswer, sendReply } from './webhook-answer.js';
import type { FastifyReplyLike, WebhookAnswer } from './webhook-answer.js';
import { WEBHOOK_OPTIONS } from './webhook-options.js';
import type { ResolvedWebhookOptions } from './webhook-options.js';
import { WebhookRoutes } from './webhook-routes.js';

/** What this file needs of a Fastify instance and request; the package does not depend on Fastify. */
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
  readonly params?: unknown;
}
/** What Express and body parsers add to Node's request: the path is without the query, whatever the request line. */
interface ExpressRequestLike extends IncomingMessage {
  readonly path: string;
  readonly rawBody?: unknown;
  readonly body?: unknown;
}

/**
 * Passes the requests on the routes of deliveries through {@link Admission}, which reads their bytes before any parser
 * sees them; every other route keeps its body as it was. It mounts itself as soon as the HTTP adapter is there, because
 * Nest mounts its own JSON parser before the middleware of any module.
 */
@Injectable()
export class RawBodyMiddleware {
  constructor(
    host: HttpAdapterHost,
    private readonly routes: WebhookRoutes,
    private readonly admission: Admission,
    private readonly pending: PendingRequests,
    private readonly rejections: RejectionLog,
    @Inject(PAYMENTS_RUNTIME) private readonly runtime: PaymentsRuntime,
    @Inject(WEBHOOK_OPTIONS) private readonly options: ResolvedWebhookOptions,
  ) {
    beforeBodyParsers(host, (adapter) => {
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
    const company = request.method === 'POST' ? this.routes.companyIn(request.path) : undefined;
    if (company === undefined) {
      next();
      return;
    }
    const { headers, url, socket } = request;
    const arriving = {
      headers,
      url,
      socket,
      company,
      body: request,
      given: request,
      request,
      response,
    };
    this.admission.admit(arriving).then(
      (pending) => {
        this.pending.attach(request, pending);
        next();
      },
      (error: unknown) =>
        sendAnswer(response, this.#refuse(error, arriving.body, request, response)),
    );
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
    reply: FastifyReplyLike & { readonly raw: ServerResponse },
    payload: Readable,
  ): Promise<unknown> => {
    if (request.raw.method !== 'POST') return payload;
    const { raw, params } = request;
    const { headers, url, socket } = raw;
    // A hook may have left the bytes on Fastify's request, and an adapter of a serverless platform on Node's.
    const given = { rawBody: request.rawBody ?? raw.rawBody, body: raw.body };
    const company = companyOf(params);
    const arriving = {
      headers,
      url,
      socket,
      company,
      body: payload,
      given,
      request,
      response: reply.raw,
    };
    try {
      this.pending.attach(raw, await this.admission.admit(arriving));
    } catch (error) {
      return sendReply(reply, this.#refuse(error, payload, raw, reply.raw));
    }
    return emptyFastifyBody(headers, Number(headerText(headers['content-length'])) || 0);
  };

  #refuse(
    error: unknown,
    body: Readable,
    request: IncomingMessage,
    response: ServerResponse,
  ): WebhookAnswer {
    // A request that is over is not logged as refused.
    if (error instanceof PaymentsError) this.rejections.note(error);
    else if (!request.destroyed && !response.writableEnded) this.rejections.unexpected(error);
    discardBody(request, body, this.runtime);
    return answerError(error);
  }
}
