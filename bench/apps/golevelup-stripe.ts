// @golevelup/nestjs-stripe, set up as in its README, with one handler that does nothing.
import { StripeModule, StripeWebhookHandler } from '@golevelup/nestjs-stripe';
import { SECRET } from '../load/webhook-requests.ts';
import { configuration, serveCommands } from '../../test/support/processes/command-process.ts';
import { listen, provider } from './nest-application.ts';
import type { Adapter } from './nest-application.ts';

const { adapter } = configuration() as { adapter: Adapter };
const app = await listen(
  adapter,
  {
    imports: [
      StripeModule.forRoot({
        apiKey: 'sk_bench',
        webhookConfig: { stripeSecrets: { account: SECRET }, requestBodyProperty: 'rawBody' },
      }),
    ],
    providers: [provider(() => {}, StripeWebhookHandler('charge.succeeded'))],
  },
  { rawBody: true },
);
serveCommands(`${await app.getUrl()}/stripe/webhook`, { end: () => app.close() });
