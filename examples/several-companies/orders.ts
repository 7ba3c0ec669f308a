import { Injectable } from '@nestjs/common';
import { OnPaymentEvent, PaymentsApiService } from 'nestjs-payments';
import type { PaymentEvent, PaymentEventContext } from 'nestjs-payments';
import type { SqliteTransaction } from 'nestjs-payments/sqlite';

// Two companies may use the same reference, so each row has the company.
const CREATE = `CREATE TABLE IF NOT EXISTS bookings (
  company TEXT, transaction_id TEXT, reference TEXT NOT NULL, amount REAL NOT NULL,
  PRIMARY KEY (company, transaction_id))`;
const BOOK = 'INSERT INTO bookings VALUES (?, ?, ?, ?)';

@Injectable()
export class Orders {
  constructor(private readonly payments: PaymentsApiService) {}

  @OnPaymentEvent('transaction.completed')
  async book(
    event: PaymentEvent<'transaction.completed'>,
    context: PaymentEventContext<SqliteTransaction>,
  ) {
    const { company, signal } = context;
    const { transactionId, externalReference, amount } = event.data;
    const transaction = await this.payments
      .forCompany(company)
      .getTransaction<{ status?: string }>(transactionId, { signal });
    if (transaction.status !== 'complete') throw new Error(`${transactionId} is not complete yet`);
    await context.commit((tx) => {
      tx.exec(CREATE);
      tx.prepare(BOOK).run(company, transactionId, externalReference, amount);
    });
  }
}
