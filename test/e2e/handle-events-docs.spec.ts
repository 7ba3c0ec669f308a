import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { INestApplication, Type } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { PaymentInbox, PaymentsApiService, PaymentsModule } from 'nestjs-payments';
import { deliver, FakePaymentsApi, paymentEvent } from 'nestjs-payments/testing';
import { ReadmeProgram } from '../support/docs/readme-program.js';
import { CapturedLog } from '../support/log/captured-log.js';

/** Classes of the page with handlers, by file. */
const HANDLERS = {
  'orders.js': 'Orders',
  'audit-log.js': 'AuditLog',
  'payouts.js': 'Payouts',
  'receipts.js': 'Receipts',
};

describe('docs/handle-events.md', () => {
  const log = new CapturedLog();
  const payments = new FakePaymentsApi();
  let program: ReadmeProgram;
  let app: INestApplication;

  beforeAll(async () => {
    program = new ReadmeProgram('docs/handle-events.md');
    expect(program.complaints).toEqual([]);
    const providers = await Promise.all(
      Object.entries(HANDLERS).map(async ([file, name]) => {
        const url = pathToFileURL(join(program.folder, file)).href;
        return ((await import(url)) as Record<string, Type>)[name]!;
      }),
    );
    const credentials = { clientId: 'a', clientSecret: 'b', webhookSecret: 'whsec_1' };
    const testing = await Test.createTestingModule({
      imports: [
        PaymentsModule.forRoot({ baseUrl: 'https://payments.example.com', ...credentials }),
      ],
      providers,
    })
      .overrideProvider(PaymentsApiService)
      .useValue(payments)
      .setLogger(log)
      .compile();
    app = testing.createNestApplication({ logger: log });
    await app.init();
  }, 60_000);
  afterAll(async () => {
    await app?.close();
    program.remove();
  });

  it('docs/handle-events.md shows handlers that take an event of their type', async () => {
    payments.respond('GET', '/v1/transactions/{id}', { status: 'complete' });
    const event = paymentEvent('transaction.completed', { externalReference: 'order-1' });
    expect(await deliver(app, event)).toMatchObject({ status: 200, body: { status: 'handled' } });
    expect(log.matching(/Order order-1 is paid/)).toHaveLength(1);
    expect(log.matching(RegExp(`transaction\\.completed ${event.id}`))).toHaveLength(1);
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

  async function deadHandlers(id: string): Promise<string[]> {
    const stored = await app.get(PaymentInbox).get(id);
    return stored!.deliveries.filter(({ state }) => state === 'dead').map(({ handler }) => handler);
  }
});
