// A merchant's own route under WebhookGuard: a delivery is verified and parsed, and kept nowhere.
import { Controller, HttpCode, Post, Req, UseGuards } from '@nestjs/common';
import { PaymentsModule, WebhookGuard } from 'nestjs-payments';
import type { VerifiedRequest } from 'nestjs-payments';
import { answer, configuration } from '../processes/parent.ts';
import { listen } from './nest.ts';
import type { Adapter } from './nest.ts';
import { COMPANY } from './company.ts';

class Webhooks {
  receive({ paymentDelivery }: VerifiedRequest): void {
    if (paymentDelivery.company !== 'default') throw new TypeError('Nothing was verified.');
  }
}
const method = Object.getOwnPropertyDescriptor(Webhooks.prototype, 'receive')!;
Post()(Webhooks.prototype, 'receive', method);
HttpCode(200)(Webhooks.prototype, 'receive', method);
Req()(Webhooks.prototype, 'receive', 0);
UseGuards(WebhookGuard)(Webhooks);
Controller('hooks/payments')(Webhooks);

const { adapter } = configuration() as { adapter: Adapter };
const app = await listen(adapter, {
  imports: [
    PaymentsModule.forRoot({
      ...COMPANY,
    }),
  ],
  controllers: [Webhooks],
});
answer(`${await app.getUrl()}/hooks/payments`, { end: () => app.close() });
