import { Injectable } from '@nestjs/common';
import { OnPaymentEvent } from 'nestjs-payments';
import type { PaymentEvent, PaymentEventContext } from 'nestjs-payments';
import type { Prisma } from './generated/client.js';

@Injectable()
export class Orders {
  @OnPaymentEvent('transaction.completed')
  async book(
    { data: { transactionId, amount } }: PaymentEvent<'transaction.completed'>,
    context: PaymentEventContext<Prisma.TransactionClient>,
  ) {
    await context.commit((tx) => tx.booking.create({ data: { transactionId, amount } }));
  }
}
