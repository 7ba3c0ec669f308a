import type { ServerResponse } from 'node:http';
import { Injectable } from '@nestjs/common';
import type { OnModuleInit } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { ModuleLogger } from '../errors/module-log.js';
import { PaymentsError } from '../errors/payments-error.js';
import { EventReceiver } from '../inbox/receive/event-receiver.js';
import { httpAdapterOf } from '../nest-internals.js';
import { rejectionResponse, RejectionLog } from './webhook-rejection.js';
import type { WebhookResponse } from './webhook-rejection.js';
import { WebhookRoutes } from './webhook-routes.js';
import { WebhookVerifier } from './webhook-verifier.js';
import type { WebhookRequest } from './webhook-verifier.js';

/** The properties of Fastify's reply that the webhook requests use. The package does not depend on Fastify. */
export interface FastifyReplyLike {
  readonly raw: ServerResponse;
  code(status: number): FastifyReplyLike;
  header(name: string, value: string): FastifyReplyLike;
  send(body: unknown): FastifyReplyLike;
}

/**
 * The route that the service sends webhook requests to. It is mounted on the HTTP adapter itself and not in a Nest
 * controller, so the application's global guards, pipes, interceptors and filters do not run: they are written for the
 * application's own clients, and here only the signature decides. Its middleware (logging, tracing, security headers)
 * runs as for any route.
 */
@Injectable()
export class WebhookEndpoint implements OnModuleInit {
  readonly #logger = new ModuleLogger('PaymentWebhook');
  #turn: Promise<void> | null = null;

  constructor(
    private readonly host: HttpAdapterHost,
    private readonly routes: WebhookRoutes,
    private readonly verifier: WebhookVerifier,
    private readonly receiver: EventReceiver,
    private readonly rejections: RejectionLog,
  ) {}

  onModuleInit(): void {
    const adapter = httpAdapterOf(this.host);
    if (adapter === undefined) return;
    const paths = this.routes.endpointPaths();
    for (const path of paths) {
      adapter.post(path, async (request: WebhookRequest, response: unknown) => {
        const result = await this.receive(request);
        await this.#endOfTurn();
        if (adapter.getType() === 'fastify') sendWithFastify(response as FastifyReplyLike, result);
        else sendWithNode(response as ServerResponse, result);
      });
    }
    if (paths.length > 0) this.#logger.log(`Webhook route: POST ${paths.join(' and POST ')}`);
  }

  /** Verifies a webhook request and stores its event. Resolves with the response. Never rejects. */
  async receive(request: WebhookRequest): Promise<WebhookResponse> {
    try {
      const event = await this.verifier.verify(request);
      const { status, id } = await this.receiver.receive(event, true);
      return { status: 200, body: { received: true, status, id } };
    } catch (error) {
      if (!(error instanceof PaymentsError)) this.rejections.logUnexpected(error);
      return rejectionResponse(error);
    }
  }

  /**
   * Resolves at the end of this turn of the event loop, for all responses of the turn together. Responses that are
   * written one after the other cost the operating system less than responses that alternate with other work: measured
   * under load, 5 µs of 64 µs per webhook request.
   */
  #endOfTurn(): Promise<void> {
    this.#turn ??= new Promise((resolve) => {
      setImmediate(() => {
        this.#turn = null;
        resolve();
      });
    });
    return this.#turn;
  }
}

/** Sends a response with Fastify. */
export function sendWithFastify(
  reply: FastifyReplyLike,
  { status, body, retryAfterSeconds }: WebhookResponse,
): FastifyReplyLike {
  if (retryAfterSeconds !== undefined) reply.header('retry-after', `${retryAfterSeconds}`);
  return reply.code(status).send(body);
}

/**
 * Sends a response with Node.js, for Express. Express's own `json()` would compute an ETag, which the service does not
 * use, and write the body separately.
 */
export function sendWithNode(
  response: ServerResponse,
  { status, body, retryAfterSeconds }: WebhookResponse,
): void {
  // Other middleware may have responded already, for example one that limits the time of every request.
  if (response.headersSent) return;
  response.statusCode = status;
  response.setHeader('content-type', 'application/json; charset=utf-8');
  if (retryAfterSeconds !== undefined) response.setHeader('retry-after', retryAfterSeconds);
  response.end(JSON.stringify(body));
}
