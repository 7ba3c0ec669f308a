// An application with nestjs-payments and one handler that records when it was called for each event.
import { OnPaymentEvent, PaymentsModule } from 'nestjs-payments';
import type { PaymentEvent } from 'nestjs-payments';
import { configuration, serveCommands } from '../../test/support/processes/command-process.ts';
import { epochMs } from '../queues/handler-counter.ts';
import { listen, provider } from './nest-application.ts';
import { COMPANY, inboxOf } from './payments-options.ts';
import type { InboxChoice } from './payments-options.ts';

const { inbox } = configuration() as { inbox: InboxChoice };
let handled: [id: string, atMs: number][] = [];
const record = ({ id }: PaymentEvent): void => void handled.push([id, epochMs()]);
const app = await listen('express', {
  imports: [PaymentsModule.forRoot({ ...COMPANY, inbox: inboxOf(inbox) })],
  providers: [provider(record, OnPaymentEvent('*', { name: 'record' }) as MethodDecorator)],
});

serveCommands(`${await app.getUrl()}/webhooks/payments`, {
  /** Returns the calls of the handler since the previous use of this command. */
  handled() {
    const calls = handled;
    handled = [];
    return calls;
  },
  end: () => app.close(),
});
