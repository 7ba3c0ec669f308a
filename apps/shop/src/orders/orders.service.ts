import { ConflictException, Injectable, NotFoundException } from '@nestjs/common';
import { toCents } from '../amount.js';
import { ShopDatabase } from '../database/shop-database.js';
import { CheckoutService } from './checkout.service.js';
import type { CreateOrderDto, OrderView, OrderWithPayments } from './order.js';

/** Creates orders and reads their status. */
@Injectable()
export class OrdersService {
  constructor(
    private readonly database: ShopDatabase,
    private readonly checkout: CheckoutService,
  ) {}

  /**
   * Creates an order and its checkout invoice. Idempotent: a second call with the same order returns the order, and
   * creates the invoice if there is none yet. If the invoice can't be created, the order is stored without it.
   *
   * @throws ConflictException if the reference belongs to an order with another amount.
   */
  async create({ reference, amount }: CreateOrderDto): Promise<OrderView> {
    // Store the order first: the webhook request may arrive before the response with the invoice.
    const order = await this.database.addOrder({ reference, amount, checkoutUrl: null });
    if (order.amount !== amount) {
      throw new ConflictException(
        `order ${reference} exists with the amount ${order.amount}; use another reference for another amount`,
      );
    }
    const view = await this.get(reference);
    if (view.checkoutUrl !== null || view.status === 'paid') return view;
    const checkoutUrl = await this.checkout.createInvoice(order);
    if (checkoutUrl !== null) await this.database.setCheckoutUrl(reference, checkoutUrl);
    return this.get(reference);
  }

  /** The current state of an order. @throws NotFoundException if it does not exist. */
  async get(reference: string): Promise<OrderView> {
    const order = await this.find(reference);
    if (order === undefined) throw new NotFoundException(`order ${reference} does not exist`);
    return order;
  }

  /** The current state of an order, or `undefined` if it does not exist. */
  async find(reference: string): Promise<OrderView | undefined> {
    return (await this.findAll([reference]))[0];
  }

  /** The current state of the orders with these references. References without an order are left out. */
  async findAll(references: readonly string[]): Promise<OrderView[]> {
    return (await this.database.findOrders(references)).map(toView);
  }
}

function toView({ reference, amount, checkoutUrl, payments }: OrderWithPayments): OrderView {
  const amountPaid = payments.reduce((sum, payment) => sum + toCents(payment), 0) / 100;
  return {
    reference,
    amount,
    status: toCents(amountPaid) >= toCents(amount) ? 'paid' : 'pending',
    checkoutUrl,
    ...(amountPaid === 0 || amountPaid === amount ? {} : { amountPaid }),
  };
}
