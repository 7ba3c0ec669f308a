// @golevelup/nestjs-stripe as its README sets it up, with one handler that does nothing.
import { StripeModule, StripeWebhookHandler } from '@golevelup/nestjs-stripe';
import { SECRET } from '../load/deliveries.ts';
import { answer, configuration } from '../processes/parent.ts';
import { listen, provider } from './nest.ts';
import type { Adapter } from './nest.ts';

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
answer(`${await app.getUrl()}/stripe/webhook`, { end: () => app.close() });
