// An application with nestjs-payments that polls the service about expected payments, and counts its SQL statements.
import { Pool } from 'pg';
import { OnPaymentEvent, PaymentsModule } from 'nestjs-payments';
import { postgresInbox } from 'nestjs-payments/postgres';
import { configuration, serveCommands } from '../../test/support/processes/command-process.ts';
import { listen, provider } from './nest-application.ts';
import { COMPANY, inboxOf } from './payments-options.ts';
import type { InboxChoice } from './payments-options.ts';

/** The configuration of the process. */
export interface ExpectingAppSetup {
  readonly inbox: InboxChoice;
  /** The URL of the payments service. */
  readonly baseUrl: string;
  /** Whether the application polls. */
  readonly polls: boolean;
}

const { inbox, baseUrl, polls } = configuration() as ExpectingAppSetup;
let statements = 0;
const app = await listen('express', {
  imports: [
    PaymentsModule.forRoot({
      ...COMPANY,
      baseUrl,
      inbox: inbox.kind === 'postgres' ? countedInbox(inbox.url) : inboxOf(inbox),
      ...(polls && {
        reconcile: { interpret: () => 'pending', eventTypes: ['transaction.completed'] },
      }),
    }),
  ],
  providers: [provider(() => {}, OnPaymentEvent('*', { name: 'nothing' }) as MethodDecorator)],
});

serveCommands(`${await app.getUrl()}/webhooks/payments`, {
  /** Returns the number of PostgreSQL statements since the previous use of this command. */
  statements() {
    const count = statements;
    statements = 0;
    return count;
  },
  end: () => app.close(),
});

/** Returns a PostgreSQL inbox with a connection pool that counts statements. */
function countedInbox(connectionString: string) {
  const pool = new Pool({ connectionString, max: 12 });
  pool.on('connect', (client) => {
    const query = client.query.bind(client) as (...values: unknown[]) => unknown;
    const counted = (...values: unknown[]): unknown => {
      statements += 1;
      return query(...values);
    };
    Object.assign(client, { query: counted });
  });
  return postgresInbox({ pool, preparedStatements: true });
}
