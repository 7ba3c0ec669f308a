import { Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { OnPaymentEvent, PaymentsModule, readPaymentsEnvironment } from 'nestjs-payments';
import type { PaymentEvent, PaymentEventContext } from 'nestjs-payments';
import { jetStream } from 'nestjs-payments-jetstream';
import { postgresInbox } from 'nestjs-payments/postgres';
import type { PostgresTransaction } from 'nestjs-payments/postgres';

// In production, create the table in a migration.
const CREATE =
  'CREATE TABLE IF NOT EXISTS bookings (transaction_id text PRIMARY KEY, amount float8 NOT NULL)';
const BOOK = 'INSERT INTO bookings (transaction_id, amount) VALUES ($1, $2)';

@Injectable()
class Ledger {
  @OnPaymentEvent('transaction.completed')
  async book(
    { data }: PaymentEvent<'transaction.completed'>,
    context: PaymentEventContext<PostgresTransaction>,
  ) {
    await context.commit(async (tx) => {
      await tx.query(CREATE);
      await tx.query(BOOK, [data.transactionId, data.amount]);
    });
  }
}

@Module({
  imports: [
    PaymentsModule.forRootAsync({
      webhookPath: false,
      useFactory: () => ({
        ...readPaymentsEnvironment(),
        inbox: postgresInbox({ connectionString: process.env['LEDGER_DATABASE_URL'] }),
        source: jetStream({
          servers: process.env['NATS_URL']!,
          stream: 'PAYMENTS',
          service: 'ledger',
          oneReplica: process.env['NODE_ENV'] !== 'production',
        }),
      }),
    }),
  ],
  providers: [Ledger],
})
class LedgerModule {}

const app = await NestFactory.createApplicationContext(LedgerModule);
app.enableShutdownHooks();
