import { deepEqual, partialDeepStrictEqual } from 'node:assert/strict';
import { DatabaseSync } from 'node:sqlite';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { Test } from '@nestjs/testing';
import { PaymentsModule } from 'nestjs-payments';
import { sqliteInbox } from 'nestjs-payments/sqlite';
import { deliver, paymentEvent, settled } from 'nestjs-payments/testing';
import { SqliteLedger } from '../express-sqlite/sqlite-ledger.js';

await test('a payment whose event arrives twice is booked once', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'ledger-'));
  const file = join(folder, 'shop.db');
  const payments = PaymentsModule.forRoot({
    baseUrl: 'http://127.0.0.1:9', // the handler calls no API
    clientId: 'client',
    clientSecret: 'secret',
    webhookSecret: 'whsec_test',
    inbox: sqliteInbox({ file }),
  });
  const testing = await Test.createTestingModule({
    imports: [payments],
    providers: [SqliteLedger],
  }).compile();
  const app = testing.createNestApplication({ logger: false });
  const event = paymentEvent('transaction.completed', { transactionId: 't-1', amount: 350 });
  partialDeepStrictEqual(await deliver(app, event), { body: { status: 'stored' } });
  partialDeepStrictEqual(await deliver(app, event), { body: { status: 'duplicate' } });
  await settled(app);
  await app.close();
  const database = new DatabaseSync(file, { readOnly: true });
  const bookings = database.prepare('SELECT * FROM bookings').all();
  database.close();
  await rm(folder, { recursive: true });
  deepEqual(
    bookings.map((row) => ({ ...row })),
    [{ transaction_id: 't-1', amount: 350 }],
  );
});
