import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import type { INestApplication, Type } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { OnPaymentEvent, PaymentExpectations, PaymentsModule } from 'nestjs-payments';
import type { PaymentEvent, PaymentsApi, ReconcileOptions } from 'nestjs-payments';
import { sqliteInbox } from 'nestjs-payments/sqlite';
import { PaymentsEmulator } from 'payments-emulator';
import { PAGE_CONTEXT } from '../../support/docs/page-context.js';
import { runReaderTests } from '../../support/docs/reader-tests.js';
import { ReadmeProgram } from '../../support/docs/readme-program.js';
import { CapturedLog } from '../../support/log/captured-log.js';
import { freePort } from '../../support/processes/free-port.js';
import { startProgram } from '../../support/processes/start-program.js';
import { eventually } from '../../support/time/waiting.js';

const root = resolve(import.meta.dirname, '../../..');
const textOf = (page: string) => readFileSync(join(root, page), 'utf8');

@Injectable()
class Bookings {
  readonly references: string[] = [];

  @OnPaymentEvent('transaction.completed')
  book({ data }: PaymentEvent<'transaction.completed'>): void {
    this.references.push(data.externalReference);
  }
}

interface Checkout {
  requestPayment(reference: string, amount: number): Promise<string>;
}
interface Sweep {
  count(from: Date, to: Date): Promise<object>;
  sweep(from: Date, to: Date): Promise<object>;
}

type PlaceOrder = (
  file: string,
  expectations: PaymentExpectations,
  reference: string,
) => Promise<void>;

describe('docs/expectations.md', () => {
  let log: CapturedLog;
  let program: ReadmeProgram;
  let page: Record<'checkout' | 'overdue' | 'declined' | 'sweep', Type> & {
    reconcile: ReconcileOptions;
  };
  let placeOrder: PlaceOrder;
  let emulator: PaymentsEmulator;
  let app: INestApplication;

  beforeAll(async () => {
    const orders = /^```ts file=src\/orders\.ts\n(.*?)^```/ms.exec(
      textOf('docs/getting-started.md'),
    )![1]!;
    program = new ReadmeProgram('docs/expectations.md', {
      ...PAGE_CONTEXT['docs/expectations.md'],
      'src/orders.ts': orders,
    });
    const load = (file: string) =>
      import(pathToFileURL(join(program.folder, 'src', file)).href) as Promise<
        Record<string, never>
      >;
    const declined = await load('declined-orders.js');
    placeOrder = (await load('place-order.js'))['placeOrder']!;
    page = {
      checkout: (await load('checkout.service.js'))['CheckoutService']!,
      overdue: (await load('overdue-payments.js'))['OverduePayments']!,
      declined: declined['DeclinedOrders']!,
      sweep: (await load('sweep-outage.js'))['SweepOutage']!,
      reconcile: {
        interpret: declined['interpret']!,
        find: (await load('find-transaction.js'))['find']!,
      },
    };
  });
  afterAll(() => program.remove());

  beforeEach(async () => {
    log = new CapturedLog();
    emulator = await PaymentsEmulator.start({ port: 0, webhookUrl: 'http://127.0.0.1:9/' });
    emulator.setFaults({ delivery: { off: true } });
    const { clientId, clientSecret, webhookSecret } = emulator.company;
    const company = { clientId, clientSecret, webhookSecret };
    const { reconcile, ...providers } = page;
    const payments = PaymentsModule.forRoot({ baseUrl: emulator.baseUrl, ...company, reconcile });
    const testing = await Test.createTestingModule({
      imports: [payments],
      providers: [Bookings, ...Object.values(providers)],
    })
      .setLogger(log)
      .compile();
    app = await testing.createNestApplication({ logger: log }).init();
  });
  afterEach(async () => {
    await app?.close();
    await emulator?.close();
  });

  const transactionOf = (reference: string): string =>
    emulator.transactions().find(({ externalReference }) => externalReference === reference)!
      .transactionId;
  const state = async (reference: string) =>
    (await app.get(PaymentExpectations).get(reference))?.state;
  const askNow = (reference: string) => app.get(PaymentExpectations).askNow({ reference });

  it('docs/expectations.md shows a checkout whose payment is booked although no webhook arrives', async () => {
    const checkoutUrl = await app.get<Checkout>(page.checkout).requestPayment('order-1', 350);
    expect(checkoutUrl).toContain('/');
    expect(await app.get(PaymentExpectations).get('order-1')).toMatchObject({
      state: 'waiting',
      transactionId: transactionOf('order-1'),
    });
    emulator.complete(transactionOf('order-1'));
    await askNow('order-1');
    await eventually(() => expect(app.get(Bookings).references).toEqual(['order-1']));
    expect(await state('order-1')).toBe('fulfilled');
  });

  it('docs/expectations.md shows a find() that throws unless the response lists one transaction or no transaction', async () => {
    const found = (transactions: unknown) =>
      page.reconcile.find!(
        'order-1',
        { get: async () => ({ transactions }) } as unknown as PaymentsApi,
        { signal: new AbortController().signal },
      );
    expect(await found([])).toBeUndefined();
    expect(await found([{ transactionId: 't-1' }])).toBe('t-1');
    for (const nonsense of [
      undefined,
      null,
      {},
      '',
      't-1',
      [{}],
      [null],
      [{ transactionId: '' }],
      [{ transactionId: 't-1' }, { transactionId: 't-2' }],
    ]) {
      await expect(found(nonsense)).rejects.toThrow();
    }
  });

  it('docs/expectations.md shows an application, and a command that requests one payment even if the command runs twice', async () => {
    const port = await freePort();
    const { clientId, clientSecret, webhookSecret } = emulator.company;
    emulator.setWebhook({ url: `http://127.0.0.1:${port}/webhooks/payments` });
    emulator.setFaults({});
    await using application = startProgram(
      join(relative(root, program.folder), 'src/main.js'),
      {
        PORT: String(port),
        PAYMENTS_BASE_URL: emulator.baseUrl,
        PAYMENTS_CLIENT_ID: clientId,
        PAYMENTS_CLIENT_SECRET: clientSecret,
        PAYMENTS_WEBHOOK_SECRET: webhookSecret,
      },
      [],
      program.folder,
    );
    await application.prints(/successfully started/);
    const [, command = ''] = /^```sh\n(curl .*)$/m.exec(textOf('docs/expectations.md'))!;
    const shell = ['-c', command.replace(':3000', `:${port}`)];
    const request = async () => {
      const { stdout } = await promisify(execFile)('sh', shell);
      return JSON.parse(stdout) as { checkoutUrl?: string };
    };
    const response = await eventually(request);
    expect(response.checkoutUrl).toContain(transactionOf('order-60'));
    expect(await request()).toEqual(response);
    expect(emulator.transactions()).toHaveLength(1);
    emulator.complete(transactionOf('order-60'));
    await application.prints(/Payment order-60: 350 paid/);
  });

  it('docs/expectations.md shows orders that are stored together with their expectations on SQLite', async () => {
    const file = join(program.folder, 'inbox.db');
    const inbox = sqliteInbox({ file, allowOldSqlite: true });
    const { clientId, clientSecret, webhookSecret } = emulator.company;
    const options = { baseUrl: emulator.baseUrl, clientId, clientSecret, webhookSecret };
    const payments = PaymentsModule.forRoot({ ...options, inbox, reconcile: page.reconcile });
    const testing = await Test.createTestingModule({ imports: [payments] })
      .setLogger(log)
      .compile();
    const shop = await testing.createNestApplication({ logger: log }).init();
    const expectations = shop.get(PaymentExpectations);
    const db = new DatabaseSync(file, { timeout: 5000 });
    db.exec('CREATE TABLE orders (reference TEXT PRIMARY KEY) STRICT');
    for (const reference of ['a', 'b', 'c']) await placeOrder(file, expectations, reference);
    await expect(placeOrder(file, expectations, 'c')).rejects.toThrow('UNIQUE');
    expect(db.prepare('SELECT count(*) AS count FROM orders').get()).toMatchObject({ count: 3 });
    expect((await expectations.list()).expectations).toHaveLength(3);
    db.close();
    await shop.close();
  });

  it('EX-09 docs/expectations.md shows a checkout that finds the payment of a call with an unknown outcome, without a second call', async () => {
    emulator.setFaults({
      delivery: { off: true },
      api: { reset: { when: 'after', next: 1 } },
    });
    const call = app.get<Checkout>(page.checkout).requestPayment('order-2', 350);
    await expect(call).rejects.toMatchObject({ code: 'outcome_unknown' });
    expect(await state('order-2')).toBe('waiting');
    emulator.complete(transactionOf('order-2'));
    await askNow('order-2');
    await eventually(() => expect(app.get(Bookings).references).toEqual(['order-2']));
    expect(emulator.transactions()).toHaveLength(1);
  });

  it('docs/expectations.md shows a checkout that keeps the expectation after an error, and can be called again', async () => {
    emulator.setFaults({ api: { rateLimit: { next: 1 } } });
    const call = app.get<Checkout>(page.checkout).requestPayment('order-3', 350);
    await expect(call).rejects.toMatchObject({ code: 'rate_limited' });
    expect(await state('order-3')).toBe('waiting');
    expect(await app.get<Checkout>(page.checkout).requestPayment('order-3', 350)).toContain('/');
    expect(emulator.transactions()).toHaveLength(1);
  });

  it('EX-10 docs/expectations.md shows a handler that runs for a declined payment', async () => {
    await app.get<Checkout>(page.checkout).requestPayment('order-4', 350);
    emulator.fail(transactionOf('order-4'));
    await askNow('order-4');
    await eventually(() => expect(log.matching(/Order order-4 can be paid again/)).toHaveLength(1));
    expect(app.get(Bookings).references).toEqual([]);
  });

  it('docs/expectations.md shows a handler of overdue payments', async () => {
    const dueBy = new Date(Date.now() - 1);
    await app.get(PaymentExpectations).expect({ reference: 'order-5', dueBy });
    await eventually(() => expect(log.matching(/No result of order-5 after/)).toHaveLength(1));
    expect(await state('order-5')).toBe('overdue');
  });

  it('EX-11 docs/expectations.md shows a sweep that counts first and then finds the missed payments', async () => {
    for (const reference of ['order-6', 'order-7']) {
      await app.get<Checkout>(page.checkout).requestPayment(reference, 350);
    }
    emulator.complete(transactionOf('order-6'));
    const [from, to] = [new Date(Date.now() - 60_000), new Date(Date.now() + 60_000)];
    const sweep = app.get<Sweep>(page.sweep);
    expect(await sweep.count(from, to)).toEqual({ expectations: 2, polls: 0 });
    expect(app.get(Bookings).references).toEqual([]);
    expect(await sweep.sweep(from, to)).toEqual({ expectations: 2, polls: 2 });
    await eventually(() => expect(app.get(Bookings).references).toEqual(['order-6']));
    expect(await state('order-7')).toBe('waiting');
  });

  it('docs/expectations.md shows a test that passes', async () => {
    const { output, code } = await runReaderTests(program);
    expect(output).toContain('1 passed, 1 total');
    expect(code).toBe(0);
  });
});
