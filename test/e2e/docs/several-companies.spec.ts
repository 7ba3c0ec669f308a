import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import type { DynamicModule, INestApplication, Type } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { PaymentsApiService } from 'nestjs-payments';
import { deliver, FakePaymentsApi, paymentEvent, settled } from 'nestjs-payments/testing';
import { ReadmeProgram } from '../../support/docs/readme-program.js';

const VARIABLES = {
  PAYMENTS_BASE_URL: 'https://payments.example.com',
  PAYMENTS_CLIENT_ID: 'c',
  PAYMENTS_CLIENT_SECRET: 's',
  PAYMENTS_WEBHOOK_SECRET: 'whsec_unused',
  PAYMENTS_WEBHOOK_SECRETS: 'whsec_new whsec_old',
  ...Object.fromEntries(
    ['ACME', 'UMBRELLA'].flatMap((name) => [
      [`${name}_CLIENT_ID`, name],
      [`${name}_CLIENT_SECRET`, name],
      [`${name}_WEBHOOK_SECRET`, `whsec_${name}`],
    ]),
  ),
};

describe('the guides for companies and secrets', () => {
  const cwd = process.cwd();
  let companies: ReadmeProgram;
  let rotation: ReadmeProgram;
  let app: INestApplication | undefined;
  beforeAll(() => {
    Object.assign(process.env, VARIABLES);
    companies = new ReadmeProgram('docs/several-companies.md');
    rotation = new ReadmeProgram('docs/rotate-secrets.md');
  });
  afterEach(async () => {
    await app?.close();
    app = undefined;
    process.chdir(cwd);
  });
  afterAll(() => {
    for (const name of Object.keys(VARIABLES)) delete process.env[name];
    companies.remove();
    rotation.remove();
  });

  const load = async <T>({ folder }: ReadmeProgram, file: string): Promise<T> =>
    (await import(pathToFileURL(join(folder, file)).href)) as T;

  const start = async (module: Type | DynamicModule, api = new FakePaymentsApi()) => {
    const builder = Test.createTestingModule({ imports: [module] });
    const testing = await builder.overrideProvider(PaymentsApiService).useValue(api).compile();
    app = testing.createNestApplication({ logger: false });
    return app.init();
  };

  it('docs/several-companies.md has a list of companies, and a handler that calls the service for the company of its event', async () => {
    const { Payments } = await load<{ Payments: Type }>(companies, 'payments.module.js');
    const api = new FakePaymentsApi();
    api.respond('GET', '/v1/transactions/{id}', { status: 'complete' });
    process.chdir(companies.folder);
    const started = await start(Payments, api);
    for (const company of ['acme', 'umbrella']) {
      const event = paymentEvent('transaction.completed', { externalReference: 'order-1' });
      expect(await deliver(started, event, { company })).toMatchObject({ status: 200 });
    }
    await settled(started);
    const database = new DatabaseSync('companies.db', { readOnly: true });
    const bookings = database.prepare('SELECT company, reference FROM bookings').all();
    database.close();
    expect(bookings.map((row) => ({ ...row }))).toEqual([
      { company: 'acme', reference: 'order-1' },
      { company: 'umbrella', reference: 'order-1' },
    ]);
    expect(api.calls.map(({ company }) => company).toSorted()).toEqual(['acme', 'umbrella']);
    const event = paymentEvent('transaction.completed');
    expect(
      await deliver(started, event, { company: 'acme', secret: 'whsec_UMBRELLA' }),
    ).toMatchObject({ status: 401, body: { code: 'signature_mismatch' } });
  });

  it('docs/several-companies.md has a directory that finds companies by their id', async () => {
    const { directoryPayments, Merchants } = await load<{
      directoryPayments: DynamicModule;
      Merchants: Type<{ rows: Map<string, object> }>;
    }>(companies, 'merchant-directory.js');
    const started = await start(directoryPayments);
    const { rows } = started.get(Merchants, { strict: false });
    rows.set('cafe', { clientId: 'c', clientSecret: 's', webhookSecret: 'whsec_cafe' });
    const event = paymentEvent('webhook.test');
    expect(await deliver(started, event, { company: 'cafe' })).toMatchObject({ status: 200 });
    expect(
      await deliver(started, event, { company: 'nobody', secret: 'whsec_cafe' }),
    ).toMatchObject({ status: 401, body: { code: 'company_unknown' } });
  });

  it('docs/rotate-secrets.md shows an application that accepts the old and the new webhook secret, and no other secret', async () => {
    const { payments } = await load<{ payments: DynamicModule }>(rotation, 'payments.module.js');
    const started = await start(payments);
    const statuses: number[] = [];
    for (const secret of ['whsec_new', 'whsec_old', 'whsec_unused']) {
      const { status } = await deliver(started, paymentEvent('webhook.test'), { secret });
      statuses.push(status);
    }
    expect(statuses).toEqual([200, 200, 401]);
  });
});
