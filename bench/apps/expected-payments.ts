// An application with nestjs-payments that polls the service about expected payments, and counts its SQL statements.
import { Pool } from 'pg';
import { OnPaymentEvent, PaymentExpectations, PaymentsModule } from 'nestjs-payments';
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
const { baseUrl: _, ...company } = COMPANY;
let statements = 0;
/** Callbacks for the end of a poll, by the reference of the payment. */
const onPolled = new Map<string, () => void>();
const app = await listen('express', {
  imports: [
    PaymentsModule.forRoot({
      baseUrl,
      companies: [
        { ...company, id: 'default' },
        { ...company, id: 'hung', webhookSecret: 'whsec_bench_of_the_other_company' },
      ],
      observers: [{ pollEnded: ({ reference }) => onPolled.get(reference)?.() }],
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
  /** Stores `count` expected payments whose polls never get a response. */
  async hang(count: number) {
    const names = Array.from({ length: count }, (_, n) => ({
      reference: `hung-${n}`,
      company: 'hung',
    }));
    const expectations = app.get(PaymentExpectations);
    const store = (name: (typeof names)[number]) =>
      expectations.expect({ ...name, transactionId: name.reference });
    for (const name of names) await store(name);
    await expectations.askNow(names);
  },
  /** Polls a payment of another company, and resolves with the milliseconds until the poll has ended. */
  async poll(reference: string) {
    const expectations = app.get(PaymentExpectations);
    await expectations.expect({ reference, transactionId: reference, company: 'default' });
    const polled = new Promise<void>((resolve) => onPolled.set(reference, resolve));
    const start = performance.now();
    await expectations.askNow({ reference, company: 'default' });
    await polled;
    return performance.now() - start;
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
