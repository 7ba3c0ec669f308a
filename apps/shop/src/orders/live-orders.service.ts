import { Injectable } from '@nestjs/common';
import type { Observable } from 'rxjs';
import { PolledValues } from '../live/polled-values.js';
import type { OrderView } from './order.js';
import { OrdersService } from './orders.service.js';

/** Reports the changes of orders, including changes by other instances of the shop. */
@Injectable()
export class LiveOrdersService {
  readonly #orders: PolledValues<OrderView>;

  constructor(orders: OrdersService) {
    this.#orders = new PolledValues('orders', async (references) => {
      const views = await orders.findAll(references);
      return new Map(views.map((view) => [view.reference, view]));
    });
  }

  /**
   * Emits the current state of an order, and the new state after each change. Emits nothing if the order does not
   * exist.
   */
  watch(reference: string): Observable<OrderView> {
    return this.#orders.watch(reference);
  }

  /** Reads the watched orders now. Call this method when this instance has recorded a payment. */
  refresh(): void {
    this.#orders.refresh();
  }
}
