import { Inject, Injectable, Logger } from '@nestjs/common';
import { PaymentsApiService, PaymentsError } from 'nestjs-payments';
import { shopConfig } from '../shop-config.js';
import type { ShopSettings } from '../shop-config.js';
import type { Order } from './order.js';

/** The time limit for the creation of an invoice, in milliseconds. The customer waits for it. */
const DEADLINE_MS = 10_000;

/**
 * Creates checkout invoices at the payments service.
 *
 * If the outcome of a request is unknown, neither the payments module nor the shop repeats it. The customer can request the
 * invoice again. The first invoice, if it exists, is then not paid, because nobody has its address. If it were paid
 * anyway, its payment would have the reference of the same order.
 */
@Injectable()
export class CheckoutService {
  readonly #logger = new Logger(CheckoutService.name);
  readonly #running = new Map<string, Promise<string | null>>();

  constructor(
    private readonly payments: PaymentsApiService,
    @Inject(shopConfig.KEY) private readonly settings: ShopSettings,
  ) {}

  /** Resolves with the address of the checkout page, or with `null` if there is none. The log has the reason. */
  createInvoice(order: Order): Promise<string | null> {
    // A customer who clicks twice gets one invoice.
    const invoice = this.#running.get(order.reference) ?? this.#request(order);
    this.#running.set(order.reference, invoice);
    return invoice.finally(() => this.#running.delete(order.reference));
  }

  async #request({ reference, amount }: Order): Promise<string | null> {
    try {
      const invoice = await this.payments.post<{ checkoutUrl?: unknown } | undefined>(
        this.settings.checkoutPath,
        { body: { amount, externalReference: reference }, deadlineMs: DEADLINE_MS },
      );
      const url = invoice?.checkoutUrl;
      if (typeof url === 'string' && URL.canParse(url)) return url;
      this.#logger.warn(
        `Order ${reference} has no checkout page: the response has no valid checkoutUrl`,
      );
    } catch (error) {
      if (!(error instanceof PaymentsError)) throw error;
      this.#logger.warn(`Order ${reference} has no checkout page yet: ${error.message}`);
    }
    return null;
  }
}
