// An application with nestjs-payments and one handler that does nothing.
import { OnPaymentEvent, PaymentInbox, PaymentsModule } from 'nestjs-payments';
import { configuration, serveCommands } from '../../test/support/processes/command-process.ts';
import { observersOf } from './observers.ts';
import type { ObserverChoice } from './observers.ts';
import { inboxOf } from './payments-options.ts';
import type { InboxChoice } from './payments-options.ts';
import { listen, provider } from './nest-application.ts';
import type { Adapter } from './nest-application.ts';
import { COMPANY } from './payments-options.ts';
import { sdkCalls } from './otel-sdk-calls.ts';

/** The configuration of the process. */
export interface PaymentsAppSetup {
  readonly adapter: Adapter;
  readonly inbox: InboxChoice;
  /** Whether handlers run. If false, received events stay pending. Default true. */
  readonly works?: boolean;
  /** The observers of the application. Default: no observers. */
  readonly observers?: ObserverChoice;
}

const { adapter, inbox, works = true, observers } = configuration() as PaymentsAppSetup;
const handler = observers === 'sdk' ? sdkCalls() : () => {};
const app = await listen(adapter, {
  imports: [
    PaymentsModule.forRoot({
      ...COMPANY,
      inbox: inboxOf(inbox),
      observers: observersOf(observers),
    }),
  ],
  providers: [provider(handler, OnPaymentEvent('*', { name: 'nothing' }) as MethodDecorator)],
});
const payments = app.get(PaymentInbox);
if (!works) await payments.pause('*');

serveCommands(`${await app.getUrl()}/webhooks/payments`, {
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
