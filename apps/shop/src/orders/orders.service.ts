import { ConflictException, Injectable } from '@nestjs/common';
import { cents } from '../amount.js';
import { Checkout } from '../checkout/checkout.service.js';
import { Ledger } from '../ledger/ledger.js';
import type { NewOrder } from './new-order.dto.js';
import { OrderBook } from './order.book.js';
import type { Order, OrderView } from './order.js';

/** Takes orders and tells how they stand. */
@Injectable()
export class Orders {
  constructor(
    private readonly book: OrderBook,
    private readonly checkout: Checkout,
    private readonly ledger: Ledger,
  ) {}

  /**
   * Places an order. Placing it again answers the same, and asks for the invoice where there is none yet; the
   * order stands even where there can't be one.
   *
   * @throws ConflictException where the reference is taken by an order of another amount.
   */
  async place({ reference, amount }: NewOrder): Promise<OrderView> {
    // Stored before the service hears of it: the payment's webhook may come before the invoice's answer.
    const order = await this.book.add({ reference, amount, checkoutUrl: null });
    if (order.amount !== amount) {
      throw new ConflictException(
        `order ${reference} exists with the amount ${order.amount}; place another amount under another reference`,
      );
    }
    const view = await this.#view(order);
    if (view.checkoutUrl !== null || view.status === 'paid') return view;
    const checkoutUrl = await this.checkout.open(order);
    if (checkoutUrl !== null) await this.book.setCheckoutUrl(order, checkoutUrl);
    return this.#view({ ...order, checkoutUrl });
  }

  /** How an order stands now; `undefined` where there is none of that reference. */
  async find(reference: string): Promise<OrderView | undefined> {
    const order = await this.book.find(reference);
    return order && this.#view(order);
  }

  async #view(order: Order): Promise<OrderView> {
    const { reference, amount, checkoutUrl } = order;
    const amountPaid = await this.ledger.paidFor(reference);
    return {
      reference,
      amount,
      status: cents(amountPaid) >= cents(amount) ? 'paid' : 'pending',
      checkoutUrl,
      ...(amountPaid === 0 || amountPaid === amount ? {} : { amountPaid }),
    };
  }
}
