import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Readable } from 'node:stream';
import { Inject, Injectable } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { PaymentsError } from '../errors/payments-error.js';
import { beforeBodyParsers, emptyFastifyBody } from '../nest-internals.js';
import { PAYMENTS_RUNTIME } from '../runtime/payments-runtime.js';
import type { PaymentsRuntime } from '../runtime/payments-runtime.js';
import {
  Admission,
  companyParam,
  discardBody,
  emitBodyAgain,
  headerText,
  PendingRequests,
} from './admission.js';
import type { BodyProperties } from './admission.js';
import { sendWithFastify, sendWithNode, WebhookRoutes } from './webhook-routes.js';
import type { FastifyReplyLike } from './webhook-routes.js';
import { WEBHOOK_OPTIONS } from './webhook-options.js';
import type { ResolvedWebhookOptions } from './webhook-options.js';
import { rejectionResponse, RejectionLog } from './webhook-rejection.js';
import type { WebhookResponse } from './webhook-rejection.js';

/** The properties of Express and Fastify that this file uses. The package depends on neither framework. */
interface ExpressRequestLike extends IncomingMessage, BodyProperties {
  /** Path of the request, without the query. */
  readonly path: string;
}
interface FastifyLike {
  addHook(name: 'onRoute', hook: (route: FastifyRouteLike) => void): void;
}
interface FastifyRouteLike {
  method: string | string[];
  url: string;
  bodyLimit?: number;
  preParsing?: unknown;
}
interface FastifyRequestLike {
  readonly raw: IncomingMessage & BodyProperties;
  readonly rawBody?: unknown;
  readonly params?: unknown;
}

/**
 * Passes webhook requests through {@link Admission}, which reads the bytes of their body before any parser does. The
 * middleware does not read the bodies of other requests. The middleware mounts itself as soon as the HTTP adapter
 * exists, because Nest mounts its own JSON parser before the middleware of any module.
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

  // Nest recognises its own body parsers by the names of mounted functions, so this function must not have the name of
  // a body parser.
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
    const unread = { raw: request, company, body: request, readBefore: request, request, response };
    this.admission.admit(unread).then(
      (pending) => {
        this.pending.attach(request, pending);
        emitBodyAgain(request, pending);
        next();
      },
      (error: unknown) => sendWithNode(response, this.#reject(error, request, request, response)),
    );
  };

  #mountOnFastify(instance: FastifyLike): void {
    instance.addHook('onRoute', (route) => {
      const isPost = [route.method].flat().includes('POST');
      if (!isPost || !this.routes.paths().includes(route.url)) return;
      route.bodyLimit = this.options.bodyLimitBytes;
      route.preParsing = [route.preParsing ?? []].flat().concat(this.#onFastify);
    });
  }

  readonly #onFastify = async (
    request: FastifyRequestLike,
    reply: FastifyReplyLike,
    body: Readable,
  ): Promise<unknown> => {
    const { raw, params } = request;
    if (raw.method !== 'POST') return body;
    const company = companyParam(params);
    // Other code may have read the body already. A hook may have stored the bytes on Fastify's request, and an adapter
    // of a serverless platform on Node's request.
    const readBefore = { rawBody: request.rawBody ?? raw.rawBody, body: raw.body };
    const response = reply.raw;
    const unread = { raw, company, body, readBefore, request, response };
    try {
      this.pending.attach(raw, await this.admission.admit(unread));
    } catch (error) {
      return sendWithFastify(reply, this.#reject(error, body, raw, response));
    }
    const { headers } = raw;
    return emptyFastifyBody(headers, Number(headerText(headers['content-length'])) || 0);
  };

  #reject(
    error: unknown,
    body: Readable,
    request: IncomingMessage,
    response: ServerResponse,
  ): WebhookResponse {
    if (error instanceof PaymentsError) this.rejections.logRejection(error);
    // If the connection is closed or the response is sent, the error is only a consequence of that, and is ignored.
    else if (!request.destroyed && !response.writableEnded) this.rejections.logUnexpected(error);
    discardBody(request, body, this.runtime);
    return rejectionResponse(error);
  }
}
