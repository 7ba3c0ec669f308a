import { Injectable } from '@nestjs/common';
import { OnPaymentEvent } from 'nestjs-payments';
import type { PaymentEvent, PaymentEventContext } from 'nestjs-payments';
import type { SqliteTransaction } from 'nestjs-payments/sqlite';

const CREATE = `CREATE TABLE IF NOT EXISTS bookings (
  transaction_id TEXT PRIMARY KEY, amount REAL NOT NULL)`;
const BOOK = 'INSERT INTO bookings (transaction_id, amount) VALUES (?, ?)';

@Injectable()
export class SqliteLedger {
  @OnPaymentEvent('transaction.completed')
  async book(
    { data }: PaymentEvent<'transaction.completed'>,
    context: PaymentEventContext<SqliteTransaction>,
  ) {
    await context.commit((tx) => {
      tx.exec(CREATE); // or create your tables in a migration
      tx.prepare(BOOK).run(data.transactionId, data.amount);
    });
  }
}
