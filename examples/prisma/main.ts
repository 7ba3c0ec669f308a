import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { PrismaPg } from '@prisma/adapter-pg';
import { PaymentsModule, readPaymentsEnvironment } from 'nestjs-payments';
import { postgresInbox } from 'nestjs-payments/postgres';
import { PrismaClient } from './generated/client.js';
import { Orders } from './orders.js';

const connectionString = process.env['DATABASE_URL']!;
const prisma = new PrismaClient({ adapter: new PrismaPg({ connectionString }) });

@Module({
  imports: [
    PaymentsModule.forRoot({
      ...readPaymentsEnvironment(),
      inbox: postgresInbox({
        connectionString,
        runTransaction: (work) =>
          prisma.$transaction((tx) =>
            work({ tx, query: (text, values) => tx.$queryRawUnsafe(text, ...values) }),
          ),
      }),
    }),
  ],
  providers: [Orders],
})
export class AppModule {}

// In production, use a migration.
await prisma.$executeRaw`CREATE TABLE IF NOT EXISTS bookings (transaction_id text PRIMARY KEY, amount float8 NOT NULL)`;
const app = await NestFactory.create(AppModule);
app.enableShutdownHooks();
await app.listen(process.env['PORT'] ?? 3000);
