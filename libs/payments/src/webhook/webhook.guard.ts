import { HttpException, Inject, Injectable } from '@nestjs/common';
import type { CanActivate, ExecutionContext } from '@nestjs/common';
import type { VerifiedDelivery } from '../inbox/verified.delivery.js';
import { answerError } from './webhook.answer.js';
import { WebhookVerifier } from './webhook.verifier.js';
import type { WebhookRequest } from './webhook.verifier.js';

/** A request that passed {@link WebhookGuard}. */
export interface VerifiedRequest {
  /** The delivery it carries, for `PaymentInbox.receive()`. */
  paymentDelivery: VerifiedDelivery;
}

/**
 * Lets only verified deliveries pass, for an application that receives them in a controller of its own
 * (`webhookPath: false`). A path parameter `:company` tells whose delivery it is. The request then carries
 * `paymentDelivery`, and `body` is the parsed envelope.
 *
 * It needs no flag in main.ts: the routes it stands on are found, and their raw bytes kept.
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
  constructor(@Inject(WebhookVerifier) private readonly verifier: WebhookVerifier) {}

  /** @throws HttpException 400, 401, 500 or 503, with the code in its body. */
  async canActivate(context: ExecutionContext): Promise<boolean> {
    const request = context.switchToHttp().getRequest<WebhookRequest & VerifiedRequest>();
    try {
      const delivery = await this.verifier.verify(request);
      request.paymentDelivery = delivery;
      request.rawBody = delivery.raw;
      request.body = delivery.event;
      return true;
    } catch (error) {
      const { status, body } = answerError(error);
      throw new HttpException(body, status);
    }
  }
}
