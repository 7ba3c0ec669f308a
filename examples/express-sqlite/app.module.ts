import { Module } from '@nestjs/common';
import { ConfigModule } from '@nestjs/config';
import { PaymentsModule, readPaymentsEnvironment } from 'nestjs-payments';
import { sqliteInbox } from 'nestjs-payments/sqlite';
import { SqliteLedger } from './sqlite-ledger.js';

@Module({
  imports: [
    ConfigModule.forRoot(), // reads .env
    PaymentsModule.forRootAsync({
      useFactory: () => ({ ...readPaymentsEnvironment(), inbox: sqliteInbox({ file: 'shop.db' }) }),
    }),
  ],
  providers: [SqliteLedger],
})
export class AppModule {}
