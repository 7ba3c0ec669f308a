import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { INestApplication, Type } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { PaymentInbox, PaymentsApiService, PaymentsModule } from 'nestjs-payments';
import { sqliteInbox } from 'nestjs-payments/sqlite';
import { deliver, FakePaymentsApi, paymentEvent } from 'nestjs-payments/testing';
import { ReadmeProgram } from '../../support/docs/readme-program.js';
import { CapturedLog } from '../../support/log/captured-log.js';
import { settled } from '../../support/inbox/settled.js';

/** Classes of the page with handlers, by file. */
const HANDLERS = {
  'orders.js': 'Orders',
  'payouts.js': 'Payouts',
  'receipts.js': 'Receipts',
};

const OPTIONS = {
  baseUrl: 'https://payments.example.com',
  clientId: 'a',
  clientSecret: 'b',
  webhookSecret: 'whsec_1',
};

describe('docs/handle-events.md', () => {
  const log = new CapturedLog();
  const payments = new FakePaymentsApi();
  let program: ReadmeProgram;
  let app: INestApplication;

  beforeAll(async () => {
    program = new ReadmeProgram('docs/handle-events.md');
    const providers = await Promise.all(
      Object.entries(HANDLERS).map(async ([file, name]) => {
        const url = pathToFileURL(join(program.folder, file)).href;
        return ((await import(url)) as Record<string, Type>)[name]!;
      }),
    );
    const testing = await Test.createTestingModule({
      imports: [PaymentsModule.forRoot(OPTIONS)],
      providers,
    })
      .overrideProvider(PaymentsApiService)
      .useValue(payments)
      .setLogger(log)
      .compile();
    app = testing.createNestApplication({ logger: log });
    await app.init();
  });
  afterAll(async () => {
    await app?.close();
    program.remove();
  });

  it('docs/handle-events.md shows handlers that run for an event of their type', async () => {
    payments.respond('GET', '/v1/transactions/{id}', { status: 'complete' });
    const event = paymentEvent('transaction.completed', { externalReference: 'order-1' });
    expect(await deliver(app, event)).toMatchObject({ status: 200, body: { status: 'handled' } });
    expect(log.matching(/Order order-1 is paid/)).toHaveLength(1);
  });

  it('docs/handle-events.md shows a data class that makes a delivery with wrong data a dead letter', async () => {
    const valid = paymentEvent('payout.settled', { payoutId: 'p-1', amount: 350 });
    expect(await deliver(app, valid)).toMatchObject({ status: 200 });
    expect(log.matching(/Payout p-1: 350/)).toHaveLength(1);
    const wrong = paymentEvent('payout.settled', { payoutId: 'p-2', amount: -1 });
    await deliver(app, wrong);
    expect(await deadHandlers(wrong.id)).toEqual(['payout.settled#markSettled']);
  });

  it('docs/handle-events.md shows a handler that throws UnrecoverableError, which makes a dead letter at once', async () => {
    payments.respond('GET', '/v1/transactions/{id}', { status: 'complete' });
    const event = paymentEvent('transaction.completed', { amount: 0 });
    expect(await deliver(app, event)).toMatchObject({ status: 503 });
    expect(await deadHandlers(event.id)).toEqual(['transaction.completed#send']);
  });

  it('docs/handle-events.md shows a SQLite handler that stores its booking with the outcome of the delivery', async () => {
    const file = join(program.folder, 'shop.db');
    const { SqliteLedger } = (await import(
      pathToFileURL(join(program.folder, 'sqlite-ledger.js')).href
    )) as { SqliteLedger: Type };
    const inbox = sqliteInbox({ file, allowOldSqlite: true });
    const testing = await Test.createTestingModule({
      imports: [PaymentsModule.forRoot({ ...OPTIONS, inbox })],
      providers: [SqliteLedger],
    }).compile();
    const shop = testing.createNestApplication({ logger: false });
    try {
      const event = paymentEvent('transaction.completed', { transactionId: 't-1', amount: 350 });
      await deliver(shop, event);
      await settled(shop);
      const stored = await shop.get(PaymentInbox).get(event.id);
      expect(stored!.deliveries).toMatchObject([{ state: 'done', lastError: null }]);
      const database = new DatabaseSync(file, { readOnly: true });
      const rows = database.prepare('SELECT transaction_id, amount FROM bookings').all();
      database.close();
      expect(rows.map((row) => ({ ...row }))).toEqual([{ transaction_id: 't-1', amount: 350 }]);
    } finally {
      await shop.close();
    }
  });

  async function deadHandlers(id: string): Promise<string[]> {
    const stored = await app.get(PaymentInbox).get(id);
    return stored!.deliveries.filter(({ state }) => state === 'dead').map(({ handler }) => handler);
  }
});
