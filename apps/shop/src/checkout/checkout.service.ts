import { Inject, Injectable, Logger } from '@nestjs/common';
import { PaymentsApiService, PaymentsError } from 'nestjs-payments';
import type { Order } from '../orders/order.js';
import { shopConfig } from '../shop.config.js';
import type { ShopSettings } from '../shop.config.js';

/** Milliseconds a customer is kept waiting for an invoice. */
const DEADLINE_MS = 10_000;

/**
 * Creates checkout invoices.
 *
 * Where the outcome of one is not known, the module does not repeat it, and neither does the shop by itself.
 * Placing the order again does: the first invoice, if there is one, can't be paid, since nobody was told its
 * address; and were it paid all the same, it would be booked for the same order.
 */
@Injectable()
export class Checkout {
  readonly #logger = new Logger(Checkout.name);
  readonly #opening = new Map<string, Promise<string | null>>();

  constructor(
    private readonly payments: PaymentsApiService,
    @Inject(shopConfig.KEY) private readonly settings: ShopSettings,
  ) {}

  /** Where the customer pays an order; `null` where the service gave no address, which the log explains. */
  open(order: Order): Promise<string | null> {
    // A customer who clicks twice gets one invoice.
    const opening = this.#opening.get(order.reference) ?? this.#open(order);
    this.#opening.set(order.reference, opening);
    return opening.finally(() => this.#opening.delete(order.reference));
  }

  async #open({ reference, amount }: Order): Promise<string | null> {
    try {
      const invoice = await this.payments.post<{ checkoutUrl?: unknown } | undefined>(
        this.settings.checkoutPath,
        { body: { amount, externalReference: reference }, deadlineMs: DEADLINE_MS },
      );
      const url = invoice?.checkoutUrl;
      if (typeof url === 'string' && URL.canParse(url)) return url;
      this.#logger.warn(`Order ${reference} has no checkout: the answer held no checkoutUrl`);
    } catch (error) {
      if (!(error instanceof PaymentsError)) throw error;
      this.#logger.warn(`Order ${reference} has no checkout yet: ${error.message}`);
    }
    return null;
  }
}
