import { IsNotEmpty, IsString } from 'class-validator';
import { Injectable, Logger } from '@nestjs/common';
import { OnPaymentEvent, OnPaymentOverdue } from 'nestjs-payments';
import type { PaymentEvent, PaymentEventContext, PaymentOverdueEvent } from 'nestjs-payments';
import { ShopDatabase } from '../database/shop-database.js';
import type { OrderProblem } from '../orders/order.js';

/** The fields of `data` in a `transaction.declined` event that the shop uses. */
export class DeclinedPaymentDto {
  /** Reference of the order. */
  @IsString()
  @IsNotEmpty()
  externalReference!: string;
}

/**
 * Marks orders whose payment was declined or is overdue. The service sends no webhook request for these payments.
 * Therefore the module asks the service about each expected payment. If a payment of such an order arrives later, the
 * shop records the payment, and the order is paid.
 */
@Injectable()
export class UnpaidOrderHandler {
  readonly #logger = new Logger(UnpaidOrderHandler.name);

  constructor(private readonly database: ShopDatabase) {}

  @OnPaymentEvent('transaction.declined', { name: 'mark-declined', data: DeclinedPaymentDto })
  async markDeclined(
    { data }: PaymentEvent<'transaction.declined', DeclinedPaymentDto>,
    context: PaymentEventContext,
  ): Promise<void> {
    await this.#mark(data.externalReference, 'declined', context);
    this.#logger.log(`The payment of order ${data.externalReference} was declined`);
  }

  /**
   * Marks an order as overdue. The payment has not necessarily failed: the customer may have paid. A person checks the
   * payment.
   */
  @OnPaymentOverdue({ name: 'mark-overdue' })
  async markOverdue({ data }: PaymentOverdueEvent, context: PaymentEventContext): Promise<void> {
    await this.#mark(data.reference, 'overdue', context);
    this.#logger.warn(
      `The payment of order ${data.reference} is overdue after ${data.polls} polls of the payments service: check whether the customer has paid`,
    );
  }

  async #mark(
    reference: string,
    problem: OrderProblem,
    { commit }: PaymentEventContext,
  ): Promise<void> {
    await commit((tx) => this.database.setProblem(tx, reference, problem));
  }
}
