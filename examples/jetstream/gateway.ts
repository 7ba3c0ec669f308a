import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { PaymentsModule, readPaymentsEnvironment } from 'nestjs-payments';
import { jetStream } from 'nestjs-payments-jetstream';
import { postgresInbox } from 'nestjs-payments/postgres';

@Module({
  imports: [
    PaymentsModule.forRootAsync({
      useFactory: () => ({
        ...readPaymentsEnvironment(),
        inbox: postgresInbox({ connectionString: process.env['DATABASE_URL'] }),
        relay: jetStream({
          servers: process.env['NATS_URL']!,
          stream: 'PAYMENTS',
          // Production needs a cluster of three servers.
          oneReplica: process.env['NODE_ENV'] !== 'production',
        }),
      }),
    }),
  ],
})
export class Gateway {}

const app = await NestFactory.create(Gateway);
app.enableShutdownHooks();
await app.listen(process.env['PORT'] ?? 3000);
