// A merchant with nestjs-payments and one handler that does nothing.
import { OnPaymentEvent, PaymentInbox, PaymentsModule } from 'nestjs-payments';
import { answer, configuration } from '../processes/parent.ts';
import { inboxOf } from './inboxes.ts';
import type { InboxChoice } from './inboxes.ts';
import { listen, provider } from './nest.ts';
import type { Adapter } from './nest.ts';
import { COMPANY } from './company.ts';

export interface PaymentsAppSetup {
  readonly adapter: Adapter;
  readonly inbox: InboxChoice;
  /** Whether handlers run; otherwise what is received waits. Default true. */
  readonly works?: boolean;
}

const { adapter, inbox, works = true } = configuration() as PaymentsAppSetup;
const app = await listen(adapter, {
  imports: [
    PaymentsModule.forRoot({
      ...COMPANY,
      inbox: inboxOf(inbox),
    }),
  ],
  providers: [provider(() => {}, OnPaymentEvent('*', { name: 'nothing' }) as MethodDecorator)],
});
const payments = app.get(PaymentInbox);
if (!works) await payments.pause('*');

answer(`${await app.getUrl()}/webhooks/payments`, {
  /** Resolves when every delivery is done. */
  async settled() {
    for (;;) {
      const { oldestPendingMs } = await payments.stats();
      if (oldestPendingMs === null) return;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  },
  end: () => app.close(),
});
