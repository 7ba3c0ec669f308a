import { Module } from '@nestjs/common';
import { PaymentsModule } from 'nestjs-payments';
import type { Company } from 'nestjs-payments';
import { sqliteInbox } from 'nestjs-payments/sqlite';
import { Orders } from './orders.js';

/** Reads `ACME_CLIENT_ID`, `ACME_CLIENT_SECRET` and `ACME_WEBHOOK_SECRET` for the company `acme`. */
function readCompany(id: string): Company {
  const read = (name: string) => process.env[`${id.toUpperCase()}_${name}`] ?? '';
  return {
    id,
    clientId: read('CLIENT_ID'),
    clientSecret: read('CLIENT_SECRET'),
    webhookSecret: read('WEBHOOK_SECRET'),
  };
}

@Module({
  imports: [
    PaymentsModule.forRootAsync({
      // Runs after ConfigModule.forRoot() of @nestjs/config has read the file .env.
      useFactory: () => ({
        baseUrl: process.env['PAYMENTS_BASE_URL'] ?? '',
        companies: ['acme', 'umbrella'].map(readCompany),
        inbox: sqliteInbox({ file: 'companies.db' }),
      }),
    }),
  ],
  providers: [Orders],
  exports: [PaymentsModule],
})
export class Payments {}
