import { Inject, Injectable, Logger } from '@nestjs/common';
import { PaymentExpectations, PaymentsError } from 'nestjs-payments';
import { ShopDatabase } from '../database/shop-database.js';
import { shopConfig } from '../shop-config.js';
import type { ShopSettings } from '../shop-config.js';
import { traceTransaction } from '../tracing.js';
import type { Order } from './order.js';

/**
 * The time limit for the request that creates an invoice, in milliseconds. The limit is short, because the customer
 * waits for the invoice.
 */
const DEADLINE_MS = 10_000;

/** The fields of the response with the invoice that the shop uses. The service does not document this response. */
interface Invoice {
  readonly transactionId?: unknown;
  readonly checkoutUrl?: unknown;
}

/** Creates checkout invoices at the payments service, at most one for each order. */
@Injectable()
export class CheckoutService {
  readonly #logger = new Logger(CheckoutService.name);
  readonly #running = new Map<string, Promise<void>>();

  constructor(
    private readonly expectations: PaymentExpectations,
    private readonly database: ShopDatabase,
    @Inject(shopConfig.KEY) private readonly settings: ShopSettings,
  ) {}

  /**
   * Requests the invoice of an order, unless the service has already created the invoice. If the request fails, the log
   * contains the reason, and a later call can request the invoice again. The payments module sends no second request
   * while the first request may have had an effect.
   */
  createInvoice(order: Order): Promise<void> {
    // A customer who clicks twice waits for the same response.
    const invoice = this.#running.get(order.reference) ?? this.#request(order);
    this.#running.set(order.reference, invoice);
    return invoice.finally(() => this.#running.delete(order.reference));
  }

  async #request({ reference, amount }: Order): Promise<void> {
    const path = this.settings.checkoutPath;
    const body = { amount, externalReference: reference };
    try {
      const { requested, transactionId, response } = await this.expectations.request(
        { reference },
        (api) => api.post<Invoice | undefined>(path, { body, deadlineMs: DEADLINE_MS }),
        { attach: (invoice) => textOrNull(invoice?.transactionId) },
      );
      if (transactionId !== null) traceTransaction(transactionId);
      const checkoutUrl = textOrNull(response?.checkoutUrl);
      if (checkoutUrl !== null && URL.canParse(checkoutUrl)) {
        return await this.database.setCheckoutUrl(reference, checkoutUrl);
      }
      const reason = requested
        ? 'the response has no valid checkoutUrl'
        : 'the invoice was requested before, and the response was lost or has not arrived yet';
      this.#logger.warn(`Order ${reference} has no checkout page: ${reason}`);
    } catch (error) {
      if (!(error instanceof PaymentsError)) throw error;
      this.#logger.warn(`Order ${reference} has no checkout page yet: ${error.message}`);
    }
  }
}

function textOrNull(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}
