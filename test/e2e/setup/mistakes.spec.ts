import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import { ExpressAdapter } from '@nestjs/platform-express';
import { OnPaymentEvent } from 'nestjs-payments';
import type { Company, SetupCheck } from 'nestjs-payments';
import { postgresInbox } from 'nestjs-payments/postgres';
import type { PaymentsEmulator } from 'payments-emulator';
import { express } from '../../support/http/express.js';
import { startPostgres } from '../../support/postgres/postgres-server.js';
import type { PostgresServer } from '../../support/postgres/postgres-server.js';
import { CheckedApplication, optionsOf } from '../../support/setup/checked-application.js';
import { Orders } from '../../support/webhook/webhook-application.js';
import type { Setup } from '../../support/webhook/webhook-application.js';

jest.setTimeout(60_000);

@Injectable()
class ForgottenRefunds {
  @OnPaymentEvent('transaction.completed')
  book(): void {}
}

@Injectable()
class MisspeltOrders {
  @OnPaymentEvent('transaction.complete')
  markPaid(): void {}
}

let postgres: PostgresServer;
let database: string;
beforeAll(async () => {
  postgres = await startPostgres();
  database = await postgres.createDatabase();
});
afterAll(() => postgres.end(), 60_000);

/** A proxy that parses each body, and sends it on in another format. */
async function throughReserializingProxy(checked: CheckedApplication) {
  const proxy = createServer((request, response) => {
    const { 'content-length': _, ...headers } = request.headers as Record<string, string>;
    void (async () => {
      const body = JSON.stringify(await json(request), null, 2);
      const url = `${checked.app.url}${request.url}`;
      response.statusCode = (await fetch(url, { method: 'POST', headers, body })).status;
      response.end();
    })();
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  checked.sendTo(`http://127.0.0.1:${(proxy.address() as AddressInfo).port}`);
  return async () => {
    proxy.closeAllConnections();
    await new Promise((resolve) => proxy.close(resolve));
  };
}

interface Mistake {
  readonly mistake: string;
  readonly setup?: (emulator: PaymentsEmulator) => Setup;
  /** Called when the application has started. The returned function undoes it. */
  readonly started?: (checked: CheckedApplication) => Promise<(() => Promise<void>) | void>;
  readonly companies?: string[];
  /** The line that names the mistake, and what its message and its fix contain. */
  readonly named: readonly [
    name: SetupCheck['name'],
    state: 'failed' | 'warning',
    message: RegExp,
    fix: RegExp,
  ];
}

const MISTAKES: readonly Mistake[] = [
  {
    mistake: 'a wrong secret',
    setup: () => ({ payments: { webhookSecret: 'whsec_of_yesterday' } }),
    named: [
      'webhook',
      'failed',
      /signature_mismatch.*Check that the webhook secret/,
      /Troubleshoot/,
    ],
  },
  {
    mistake: 'a wrong base URL',
    setup: () => ({ payments: { baseUrl: 'http://127.0.0.1:9' } }),
    named: ['token', 'failed', /127\.0\.0\.1:9 could not be reached/, /Check "baseUrl"/],
  },
  {
    mistake: 'the secret of the other company',
    companies: ['acme', 'umbrella'],
    setup: (emulator) => {
      const [acme, umbrella] = optionsOf(emulator).companies as [Company, Company];
      const companies = [
        { ...acme, webhookSecret: umbrella.webhookSecret },
        { ...umbrella, webhookSecret: acme.webhookSecret },
      ];
      return { payments: { companies } };
    },
    named: [
      'webhook',
      'failed',
      /signature_mismatch.*webhook secret of this company/,
      /payments\/acme/,
    ],
  },
  {
    mistake: 'the webhook address of the other company',
    companies: ['acme', 'umbrella'],
    started: async ({ emulator, app }) =>
      void emulator.setWebhook({ companyId: 'acme', url: `${app.url}/webhooks/payments/umbrella` }),
    named: [
      'webhook',
      'failed',
      /request of company umbrella was rejected \(signature_mismatch\)/,
      /POST \/webhooks\/payments\/acme\./,
    ],
  },
  {
    mistake: 'a body parser of its own',
    setup: () => ({ adapter: new ExpressAdapter(express().use(express.json())) }),
    named: ['webhook', 'failed', /raw_body_unavailable.*add the parser later or exclude/, /./],
  },
  {
    mistake: 'an inactive webhook',
    started: async ({ emulator }) => void emulator.setWebhook({ active: false }),
    named: [
      'webhook',
      'failed',
      /No webhook request reached this application within 1500 ms/,
      /Check that the webhook is active.*POST \/webhooks\/payments\./,
    ],
  },
  {
    mistake: 'a proxy that re-serializes JSON',
    started: throughReserializingProxy,
    named: ['webhook', 'failed', /signature_mismatch.*no proxy changes the body/, /./],
  },
  {
    mistake: 'a handler that is no provider',
    named: [
      'handlers',
      'warning',
      /ForgottenRefunds\.book has @OnPaymentEvent, but its class is no provider/,
      /List the class in "providers"/,
    ],
  },
  {
    mistake: 'a typo in the event type',
    setup: () => ({ providers: [MisspeltOrders] }),
    named: [
      'handlers',
      'warning',
      /takes the type "transaction\.complete".*misspelling of "transaction\.completed"/,
      /write @OnPaymentEvent\('transaction\.completed'\)/,
    ],
  },
  {
    mistake: 'a read-only database',
    setup: () => ({ payments: { inbox: postgresInbox({ connectionString: database }) } }),
    started: async () => {
      const { pathname } = new URL(database);
      const readOnly = (on: string) =>
        `ALTER DATABASE ${pathname.slice(1)} SET default_transaction_read_only = ${on}`;
      await postgres.query(database, readOnly('on'));
      await postgres.cutConnections(database);
    },
    named: ['inbox', 'failed', /read-only transaction/, /must be allowed to write/],
  },
];

describe('the check of the setup', () => {
  it.each(MISTAKES)('AP-18 the check of the setup names $mistake, and the fix', async (given) => {
    const { setup, started, companies, named } = given;
    await using checked = await CheckedApplication.start(setup, { companies });
    const undo = await started?.(checked);
    try {
      const [name, state, message, fix] = named;
      const lines = await checked.check({ sendTest: true, timeoutMs: 1500 });
      const wrong = lines.filter((line) => line.name === name && line.state === state);
      expect(wrong.find((line) => message.test(line.message))?.fix).toMatch(fix);
    } finally {
      await undo?.();
    }
  });

  it('AP-18 if there is no mistake, the check of the setup reports no failure', async () => {
    await using checked = await CheckedApplication.start(() => ({
      providers: [Orders, ForgottenRefunds, MisspeltOrders],
    }));
    const lines = await checked.check({ sendTest: true });
    expect(lines.filter(({ state }) => state === 'failed')).toEqual([]);
  });
});
