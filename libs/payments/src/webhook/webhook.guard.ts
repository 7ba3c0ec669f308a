import { HttpException, Injectable, MethodNotAllowedException } from '@nestjs/common';
import type { CanActivate, ExecutionContext } from '@nestjs/common';
import type { VerifiedEvent } from '../inbox/receive/verified-event.js';
import { PaymentsError } from '../errors/payments-error.js';
import { RequestClosed } from './pending-requests.js';
import { answerError } from './webhook-answer.js';
import { WebhookVerifier } from './webhook-verifier.js';
import type { WebhookRequest } from './webhook-verifier.js';

/** A request that passed {@link WebhookGuard}. */
export interface VerifiedRequest {
  /** The delivery it carries, for `PaymentInbox.receive()`. */
  paymentDelivery: VerifiedEvent;
}

/** What the responses of Express and Fastify have in common. */
interface Response {
  header(name: string, value: string): unknown;
}

/**
 * Accepts only verified deliveries, for an application that receives them in its own controller
 * (`webhookPath: false`). A path parameter `:company` names the company of the delivery. The request then carries
 * `paymentDelivery`, and `body` is the parsed envelope.
 *
 * It needs no flag in main.ts: the module finds the routes that it protects and keeps their raw bytes. Apply it to the
 * controller or the method: a global guard belongs to no route. The guard answers 405 to every request except a POST.
 *
 * `PaymentInbox.receive()` throws `PaymentInboxError`, which Nest's exception filter answers with 503. Your own filter must
 * not answer 2xx: then the service would not send the delivery again.
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
      // Nest logs every error that is no HttpException. A connection that the sender closed needs no log line.
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
