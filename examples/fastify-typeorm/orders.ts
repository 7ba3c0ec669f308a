import { Injectable } from '@nestjs/common';
import { OnPaymentEvent } from 'nestjs-payments';
import type { PaymentEvent, PaymentEventContext } from 'nestjs-payments';
import { Column, Entity, PrimaryColumn } from 'typeorm';
import type { EntityManager } from 'typeorm';

@Entity('bookings')
export class Booking {
  @PrimaryColumn('text', { name: 'transaction_id' })
  transactionId!: string;

  @Column('float8')
  amount!: number;
}

@Injectable()
export class Orders {
  @OnPaymentEvent('transaction.completed')
  async book(
    { data: { transactionId, amount } }: PaymentEvent<'transaction.completed'>,
    context: PaymentEventContext<EntityManager>,
  ) {
    await context.commit((manager) => manager.insert(Booking, { transactionId, amount }));
  }
}
