import { HttpException, Injectable, MethodNotAllowedException } from '@nestjs/common';
import type { CanActivate, ExecutionContext } from '@nestjs/common';
import { PaymentsError } from '../errors/payments-error.js';
import type { VerifiedEvent } from '../inbox/receive/event-receiver.js';
import { rejectionResponse, RequestClosedError } from './webhook-rejection.js';
import { WebhookVerifier } from './webhook-verifier.js';
import type { WebhookRequest } from './webhook-verifier.js';

/** A request that passed {@link WebhookGuard}. */
export interface VerifiedRequest {
  /** The event of the request, for `PaymentInbox.receive()`. */
  verifiedEvent: VerifiedEvent;
}

/**
 * Accepts only verified webhook requests, for an application that receives them in its own controller (`webhookPath:
 * false`). The path parameter `:company` of the route names the company. After the guard has accepted a request, the
 * request has the property `verifiedEvent`, and its `body` is the parsed envelope.
 *
 * You do not have to set Nest's option `rawBody` in main.ts, because the module finds the routes that the guard
 * protects and keeps the raw bytes of their requests. Apply the guard to the controller or the method. The module
 * cannot find the routes of a global guard. The guard responds with 405 to every request except a POST.
 *
 * If the inbox cannot store the event, `PaymentInbox.receive()` throws `PaymentInboxError`, and Nest's exception filter
 * responds with 503. If you write your own filter, it must not respond with 2xx, because the service would then not
 * send the event again.
 *
 * @example
 * ```ts
 * @Post('hooks/payments')
 * @HttpCode(200)
 * @UseGuards(WebhookGuard)
 * receive(@Req() request: VerifiedRequest) {
 *   return this.inbox.receive(request.verifiedEvent);
 * }
 * ```
 */
@Injectable()
export class WebhookGuard implements CanActivate {
  constructor(private readonly verifier: WebhookVerifier) {}

  /**
   * @throws HttpException 400, 401, 413, 500 or 503, with the error code in the response body; 405 if the method is not
   *   POST.
   */
  async canActivate(context: ExecutionContext): Promise<boolean> {
    const http = context.switchToHttp();
    const request = http.getRequest<WebhookRequest & VerifiedRequest>();
    if (request.method !== 'POST') {
      throw new MethodNotAllowedException('Webhook requests are sent with POST.');
    }
    try {
      const verified = await this.verifier.verify(request);
      request.verifiedEvent = verified;
      request.rawBody = verified.raw;
      request.body = verified.event;
      return true;
    } catch (error) {
      // Nest logs every error that is not an HttpException. A connection that the sender closed needs no log line.
      if (!(error instanceof PaymentsError || error instanceof RequestClosedError)) throw error;
      const { status, body, retryAfterSeconds } = rejectionResponse(error);
      if (retryAfterSeconds !== undefined) {
        const response = http.getResponse<{ header(name: string, value: string): unknown }>();
        response.header('retry-after', `${retryAfterSeconds}`);
      }
      throw new HttpException(body, status);
    }
  }
}
