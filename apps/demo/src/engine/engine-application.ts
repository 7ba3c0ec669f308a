import 'reflect-metadata';
import { DatabaseSync } from 'node:sqlite';
import { Controller, Get, Inject, Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import {
  OnPaymentEvent,
  PaymentInbox,
  PaymentsModule,
  readPaymentsEnvironment,
} from 'nestjs-payments';
import type { InboxStats, PaymentEvent, PaymentEventContext } from 'nestjs-payments';
import { sqliteInbox } from 'nestjs-payments/sqlite';
import type { SqliteTransaction } from 'nestjs-payments/sqlite';
import { createEngineAdapter } from 'test-postgres/engines/create-engine-adapter';
import type { LedgerEntry } from '../shop-client.js';
import { SERVICES } from './engine-settings.js';
import type { EngineSettings } from './engine-settings.js';

// The gateway or a worker service of the demo with an engine: `node engine-application.js`, with the environment variables
// of EngineSettings and of readPaymentsEnvironment().

const settings = process.env as unknown as EngineSettings;
const { DEMO_ENGINE: engine, DEMO_ENGINE_URL: url, DEMO_FILE: file } = settings;
const service = SERVICES.find((one) => one === settings.DEMO_SERVICE);
const adapter = await createEngineAdapter({
  engine,
  url,
  services: SERVICES,
  ...(service !== undefined && { service }),
});
const database = new DatabaseSync(file);
database.exec(
  'CREATE TABLE IF NOT EXISTS entry (transactionId TEXT, reference TEXT, amount REAL, recordedAt TEXT)',
);

/** The fields of `data` that the services use. */
interface Payment {
  readonly transactionId: string;
  readonly externalReference?: string;
  readonly amount: number;
}

/** Stores an entry for each payment. In the mail service, an entry represents a mail to the customer. */
@Injectable()
class PaymentHandler {
  @OnPaymentEvent('transaction.completed', { name: 'record-payment' })
  async recordPayment(
    { data }: PaymentEvent<'transaction.completed', Payment>,
    { commit }: PaymentEventContext<SqliteTransaction>,
  ): Promise<void> {
    const { transactionId, externalReference = null, amount } = data;
    await commit((tx) => {
      tx.prepare('INSERT INTO entry VALUES (?, ?, ?, ?)').run(
        transactionId,
        externalReference,
        amount,
        new Date().toISOString(),
      );
    });
  }
}

@Controller('api')
class ResultController {
  constructor(@Inject(PaymentInbox) private readonly inbox: PaymentInbox) {}

  @Get('ledger')
  ledger(): LedgerEntry[] {
    return database.prepare('SELECT * FROM entry').all() as unknown as LedgerEntry[];
  }

  @Get('inbox')
  stats(): Promise<InboxStats> {
    return this.inbox.stats();
  }
}

@Module({
  imports: [
    PaymentsModule.forRoot({
      ...readPaymentsEnvironment(process.env),
      inbox: sqliteInbox({ file }),
      ...(service === undefined ? { relay: adapter } : { source: adapter }),
    }),
  ],
  controllers: [ResultController],
  providers: service === undefined ? [] : [PaymentHandler],
})
class Application {}

const app = await NestFactory.create(Application, new ExpressAdapter(), { abortOnError: false });
app.enableShutdownHooks(['SIGINT', 'SIGTERM'], { useProcessExit: true });
await app.listen(0, '127.0.0.1');
process.stdout.write(`Listening on ${await app.getUrl()}\n`);
