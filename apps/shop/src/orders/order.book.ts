import { Injectable } from '@nestjs/common';
import type { Order } from './order.js';

/** Keeps orders by reference; in this process's memory, so a restart forgets them. */
@Injectable()
export class OrderBook {
  readonly #orders = new Map<string, Order>();

  /** Stores an order, unless its reference is taken. Resolves with the order that is stored. */
  async add(order: Order): Promise<Order> {
    const stored = this.#orders.get(order.reference) ?? order;
    this.#orders.set(stored.reference, stored);
    return stored;
  }

  async find(reference: string): Promise<Order | undefined> {
    return this.#orders.get(reference);
  }

  /** Notes where an order is paid. */
  async setCheckoutUrl({ reference, amount }: Order, checkoutUrl: string): Promise<void> {
    this.#orders.set(reference, { reference, amount, checkoutUrl });
  }
}
