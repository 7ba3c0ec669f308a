import { ConflictException, Injectable } from '@nestjs/common';
import { cents } from '../amount.js';
import { Books } from '../books/books.js';
import { Checkout } from '../checkout/checkout.service.js';
import type { NewOrder } from './new-order.dto.js';
import type { Order, OrderView } from './order.js';

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
    const view = await this.#view(order);
    if (view.checkoutUrl !== null || view.status === 'paid') return view;
    const checkoutUrl = await this.checkout.open(order);
    if (checkoutUrl === null) return this.#view(order);
    return this.#view(await this.books.setCheckoutUrl(reference, checkoutUrl));
  }

  /** How an order stands now; `undefined` where there is none of that reference. */
  async find(reference: string): Promise<OrderView | undefined> {
    const order = await this.books.findOrder(reference);
    return order && this.#view(order);
  }

  async #view(order: Order): Promise<OrderView> {
    const { reference, amount, checkoutUrl } = order;
    const payments = await this.books.amountsFor(reference);
    const amountPaid = payments.reduce((sum, payment) => sum + cents(payment), 0) / 100;
    return {
      reference,
      amount,
      status: cents(amountPaid) >= cents(amount) ? 'paid' : 'pending',
      checkoutUrl,
      ...(amountPaid === 0 || amountPaid === amount ? {} : { amountPaid }),
    };
  }
}
