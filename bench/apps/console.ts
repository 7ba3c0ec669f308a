// An application with nestjs-payments and its console. The process runs the queries of the console's pages.
import { OnPaymentEvent, PaymentInbox, PaymentsModule } from 'nestjs-payments';
import type { ListQuery } from 'nestjs-payments';
import { PaymentsConsoleModule } from 'nestjs-payments-console';
import { configuration, serveCommands } from '../../test/support/processes/command-process.ts';
import { listen, provider } from './nest-application.ts';
import { COMPANY, inboxOf } from './payments-options.ts';
import type { InboxChoice } from './payments-options.ts';

class Everyone {
  canActivate(): boolean {
    return true;
  }
}

/** A query of the console, and the number of times to run it. */
export interface ConsoleQuestion {
  /** The query for a page of events. If undefined, the query loads the failures. */
  readonly list?: ListQuery;
  readonly times: number;
  /** The minimum number of events or groups of failures that the query must find. */
  readonly atLeast: number;
}

const app = await listen('express', {
  imports: [
    PaymentsModule.forRoot({ ...COMPANY, inbox: inboxOf(configuration() as InboxChoice) }),
    PaymentsConsoleModule.register({ path: 'console', guards: [Everyone] }),
  ],
  providers: [provider(() => {}, OnPaymentEvent('*', { name: 'book' }) as MethodDecorator)],
});
const inbox = app.get(PaymentInbox, { strict: false });

serveCommands(`${await app.getUrl()}/console/api/overview`, {
  /** Runs a query several times, and resolves with the duration of each call in milliseconds. */
  async ask({ list, times, atLeast }: ConsoleQuestion): Promise<number[]> {
    const taken: number[] = [];
    for (let left = times; left > 0; left -= 1) {
      const start = performance.now();
      const found =
        list === undefined ? (await inbox.failures()).groups : (await inbox.list(list)).events;
      taken.push(performance.now() - start);
      if (found.length < atLeast) throw new Error(`${found.length} of ${atLeast} were found.`);
    }
    return taken;
  },
  end: () => app.close(),
});
