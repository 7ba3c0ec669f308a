import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { PaymentsModule, readPaymentsEnvironment } from 'nestjs-payments';
import { bullMQ } from 'nestjs-payments-bullmq';
import { sqliteInbox } from 'nestjs-payments/sqlite';
import { SqliteLedger } from '../express-sqlite/sqlite-ledger.js';

@Module({
  imports: [
    PaymentsModule.forRoot({
      ...readPaymentsEnvironment(),
      webhookPath: false,
      inbox: sqliteInbox({ file: 'ledger.db' }),
      source: bullMQ({ connection: process.env['REDIS_URL']!, service: 'ledger' }),
    }),
  ],
  providers: [SqliteLedger],
})
class LedgerModule {}

const app = await NestFactory.createApplicationContext(LedgerModule);
app.enableShutdownHooks();
