import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { PaymentsModule, readPaymentsEnvironment } from 'nestjs-payments';
import { bullMQ } from 'nestjs-payments-bullmq';
import { sqliteInbox } from 'nestjs-payments/sqlite';

@Module({
  imports: [
    PaymentsModule.forRoot({
      ...readPaymentsEnvironment(),
      inbox: sqliteInbox({ file: 'gateway.db' }),
      relay: bullMQ({ connection: process.env['REDIS_URL']!, services: ['ledger'] }),
    }),
  ],
})
class Gateway {}

const app = await NestFactory.create(Gateway);
app.enableShutdownHooks();
await app.listen(process.env['PORT'] ?? 3000);
