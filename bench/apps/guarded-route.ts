// A route of the application with WebhookGuard, which verifies and parses a webhook request. No event is stored.
import { Controller, HttpCode, Post, Req, UseGuards } from '@nestjs/common';
import { PaymentsModule, WebhookGuard } from 'nestjs-payments';
import type { VerifiedRequest } from 'nestjs-payments';
import { configuration, serveCommands } from '../../test/support/processes/command-process.ts';
import { listen } from './nest-application.ts';
import type { Adapter } from './nest-application.ts';
import { COMPANY } from './payments-options.ts';

class Webhooks {
  receive({ verifiedEvent }: VerifiedRequest): void {
    if (verifiedEvent.company !== 'default') throw new TypeError('The delivery was not verified.');
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
  imports: [PaymentsModule.forRoot(COMPANY)],
  controllers: [Webhooks],
});
serveCommands(`${await app.getUrl()}/hooks/payments`, { end: () => app.close() });
