import { Controller, Get, Injectable } from '@nestjs/common';
import { OnPaymentEvent } from 'nestjs-payments';
import type { PaymentEvent, PaymentEventContext } from 'nestjs-payments';
import type { PostgresTransaction } from 'nestjs-payments/postgres';

// In production, create the table in a migration.
const CREATE =
  'CREATE TABLE IF NOT EXISTS bookings (transaction_id text PRIMARY KEY, amount float8 NOT NULL)';
const BOOK = 'INSERT INTO bookings (transaction_id, amount) VALUES ($1, $2)';

@Injectable()
export class Orders {
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

/** Routes of the application itself, in the same function as the webhook. */
@Controller()
export class OrdersController {
  @Get('ping')
  ping(): string {
    return 'pong';
  }
}
