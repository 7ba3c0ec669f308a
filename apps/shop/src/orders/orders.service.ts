import { ConflictException, Injectable, NotFoundException } from '@nestjs/common';
import { PaymentExpectations } from 'nestjs-payments';
import { toCents } from '../amount.js';
import { ShopDatabase } from '../database/shop-database.js';
import { CheckoutService } from './checkout.service.js';
import type { CreateOrderDto, OrderView, OrderWithPayments } from './order.js';

/** Creates orders and reads their status. */
@Injectable()
export class OrdersService {
  constructor(
    private readonly database: ShopDatabase,
    private readonly expectations: PaymentExpectations,
    private readonly checkout: CheckoutService,
  ) {}

  /**
   * Creates an order and its checkout invoice. Idempotent: a second call with the same order returns the order, and
   * requests the invoice again only if the service has no invoice.
   *
   * Before the request to the payments service, one transaction stores the order and the expectation of its payment.
   * After this transaction, the payments module finds the payment, even if the shop crashes, the response is lost, or
   * no webhook request arrives.
   *
   * @throws ConflictException if the reference belongs to an order with another amount.
   */
  async create({ reference, amount }: CreateOrderDto): Promise<OrderView> {
    const order = await this.database.addOrder({ reference, amount }, (tx) =>
      this.expectations.expect({ reference }, { tx }),
    );
    if (order.amount !== amount) {
      throw new ConflictException(
        `order ${reference} exists with the amount ${order.amount}; use another reference for another amount`,
      );
    }
    const view = await this.get(reference);
    if (view.status !== 'pending' || view.checkoutUrl !== null) return view;
    await this.checkout.createInvoice(order);
    return this.get(reference);
  }

  /** Returns the current state of an order. @throws NotFoundException if the order does not exist. */
  async get(reference: string): Promise<OrderView> {
    const order = await this.find(reference);
    if (order === undefined) throw new NotFoundException(`order ${reference} does not exist`);
    return order;
  }

  /** Returns the current state of an order, or `undefined` if the order does not exist. */
  async find(reference: string): Promise<OrderView | undefined> {
    return (await this.findAll([reference]))[0];
  }

  /** Returns the current state of the orders with these references. References without an order are omitted. */
  async findAll(references: readonly string[]): Promise<OrderView[]> {
    return (await this.database.findOrders(references)).map(toView);
  }
}

function toView(order: OrderWithPayments): OrderView {
  const { reference, amount, checkoutUrl, problem, payments, foundByPoll } = order;
  const amountPaid = payments.reduce((sum, payment) => sum + toCents(payment), 0) / 100;
  return {
    reference,
    amount,
    status: toCents(amountPaid) >= toCents(amount) ? 'paid' : (problem ?? 'pending'),
    checkoutUrl,
    ...(foundByPoll ? { foundByPoll: true } : {}),
    ...(amountPaid === 0 || amountPaid === amount ? {} : { amountPaid }),
  };
}
