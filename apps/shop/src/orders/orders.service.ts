import { ConflictException, Injectable } from '@nestjs/common';
import { cents } from '../amount.js';
import { Books } from '../books/books.js';
import { Checkout } from '../checkout/checkout.service.js';
import type { NewOrder } from './new-order.dto.js';
import type { BookedOrder, OrderView } from './order.js';

/** Takes orders and tells how they stand. */
@Injectable()
export class Orders {
  constructor(
    private readonly books: Books,
    private readonly checkout: Checkout,
  ) {}

  /**
   * Places an order. Placing it again answers the same, and asks for the invoice where there is none yet; the
   * order stands even where there can't be one.
   *
   * @throws ConflictException where the reference is taken by an order of another amount.
   */
  async place({ reference, amount }: NewOrder): Promise<OrderView> {
    // Stored before the service hears of it: the payment's webhook may come before the invoice's answer.
    const order = await this.books.addOrder({ reference, amount, checkoutUrl: null });
    if (order.amount !== amount) {
      throw new ConflictException(
        `order ${reference} exists with the amount ${order.amount}; place another amount under another reference`,
      );
    }
    const view = (await this.find(reference))!;
    if (view.checkoutUrl !== null || view.status === 'paid') return view;
    const checkoutUrl = await this.checkout.open(order);
    if (checkoutUrl !== null) await this.books.setCheckoutUrl(reference, checkoutUrl);
    return (await this.find(reference))!;
  }

  /** How an order stands now; `undefined` where there is none of that reference. */
  async find(reference: string): Promise<OrderView | undefined> {
    return (await this.findAll([reference]))[0];
  }

  /** How the orders of these references stand now, as far as there are any. */
  async findAll(references: readonly string[]): Promise<OrderView[]> {
    return (await this.books.findOrders(references)).map(toView);
  }
}

function toView({ reference, amount, checkoutUrl, payments }: BookedOrder): OrderView {
  const amountPaid = payments.reduce((sum, payment) => sum + cents(payment), 0) / 100;
  return {
    reference,
    amount,
    status: cents(amountPaid) >= cents(amount) ? 'paid' : 'pending',
    checkoutUrl,
    ...(amountPaid === 0 || amountPaid === amount ? {} : { amountPaid }),
  };
}
