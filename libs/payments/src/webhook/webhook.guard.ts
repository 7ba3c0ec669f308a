import { HttpException, Injectable, MethodNotAllowedException } from '@nestjs/common';
import type { CanActivate, ExecutionContext } from '@nestjs/common';
import type { VerifiedDelivery } from '../inbox/verified-delivery.js';
import { PaymentsError } from '../errors/payments-error.js';
import { RequestClosed } from './pending-requests.js';
import { answerError } from './webhook-answer.js';
import { WebhookVerifier } from './webhook-verifier.js';
import type { WebhookRequest } from './webhook-verifier.js';

/** A request that passed {@link WebhookGuard}. */
export interface VerifiedRequest {
  /** The delivery it carries, for `PaymentInbox.receive()`. */
  paymentDelivery: VerifiedDelivery;
}

/** What the responses of Express and Fastify have in common. */
interface Response {
  header(name: string, value: string): unknown;
}

/**
 * Lets only verified deliveries pass, for an application that receives them in a controller of its own
 * (`webhookPath: false`). A path parameter `:company` names the company of the delivery. The request then carries
 * `paymentDelivery`, and `body` is the parsed envelope.
 *
 * It needs no flag in main.ts: the module finds the routes that it protects and keeps their raw bytes, if it is applied to
 * the controller or the method. As a global guard, it belongs to no route. A request that is no POST is
 * answered 405, since only a POST is a delivery.
 *
 * What `PaymentInbox.receive()` throws (`PaymentInboxError`) Nest's own exception filter answers 503. A filter of
 * your own must not turn it into a 2xx answer: then the delivery would not be sent again.
 *
 * @example
 * ```ts
 * @Post('hooks/payments')
 * @HttpCode(200)
 * @UseGuards(WebhookGuard)
 * receive(@Req() request: VerifiedRequest) {
 *   return this.inbox.receive(request.paymentDelivery);
 * }
 * ```
 */
@Injectable()
export class WebhookGuard implements CanActivate {
  constructor(private readonly verifier: WebhookVerifier) {}

  /** @throws HttpException 400, 401, 500 or 503, with the code in its body; 405 if the method is not POST. */
  async canActivate(context: ExecutionContext): Promise<boolean> {
    const request = context.switchToHttp().getRequest<WebhookRequest & VerifiedRequest>();
    if (request.method !== 'POST') {
      throw new MethodNotAllowedException('Payment deliveries are sent with POST.');
    }
    try {
      const delivery = await this.verifier.verify(request);
      request.paymentDelivery = delivery;
      request.rawBody = delivery.raw;
      request.body = delivery.event;
      return true;
    } catch (error) {
      // Nest logs every error that is no HttpException. That a sender closed its connection is not worth a line.
      if (!(error instanceof PaymentsError || error instanceof RequestClosed)) throw error;
      const { status, body, retryAfterSeconds } = answerError(error);
      if (retryAfterSeconds !== undefined) {
        context
          .switchToHttp()
          .getResponse<Response>()
          .header('retry-after', `${retryAfterSeconds}`);
      }
      throw new HttpException(body, status);
    }
  }
}
