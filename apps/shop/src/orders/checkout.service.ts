import { Inject, Injectable, Logger } from '@nestjs/common';
import { PaymentExpectations, PaymentsApiService, PaymentsError } from 'nestjs-payments';
import { ShopDatabase } from '../database/shop-database.js';
import { shopConfig } from '../shop-config.js';
import type { ShopSettings } from '../shop-config.js';
import { traceTransaction } from '../tracing.js';
import type { Order } from './order.js';

/** The time limit for the creation of an invoice, in milliseconds. The customer waits for it. */
const DEADLINE_MS = 10_000;

/** With these codes, the invoice may exist. With every other code, the request had no effect. */
const MAY_EXIST = ['outcome_unknown', 'server_error', 'response_invalid', 'response_too_large'];

/** What the shop uses of the response. The service does not document it. */
interface Invoice {
  readonly transactionId?: unknown;
  readonly checkoutUrl?: unknown;
}

/**
 * Creates checkout invoices at the payments service, at most one for each order.
 *
 * If the outcome of a request is unknown, neither the payments module nor the shop repeats it: the customer could pay twice.
 * The expectation of the order finds the invoice by its reference. If it does not exist, the order becomes overdue.
 */
@Injectable()
export class CheckoutService {
  readonly #logger = new Logger(CheckoutService.name);
  readonly #running = new Map<string, Promise<void>>();

  constructor(
    private readonly payments: PaymentsApiService,
    private readonly expectations: PaymentExpectations,
    private readonly database: ShopDatabase,
    @Inject(shopConfig.KEY) private readonly settings: ShopSettings,
  ) {}

  /** Requests the invoice of an expected order, unless it was requested before. If it fails, the log has the reason. */
  createInvoice(order: Order): Promise<void> {
    // A customer who clicks twice waits for the same response.
    const invoice = this.#running.get(order.reference) ?? this.#createOnce(order);
    this.#running.set(order.reference, invoice);
    return invoice.finally(() => this.#running.delete(order.reference));
  }

  async #createOnce(order: Order): Promise<void> {
    const { reference } = order;
    // Stored before the request: after a crash, the shop must assume that the service received it.
    if (!(await this.database.setRequested(reference, true))) return;
    try {
      await this.#request(order);
    } catch (error) {
      if (!(error instanceof PaymentsError)) throw error;
      const mayExist = MAY_EXIST.includes(error.code);
      if (!mayExist) await this.database.setRequested(reference, false);
      const next = mayExist ? 'The module asks the service for it.' : 'It can be requested again.';
      this.#logger.warn(`Order ${reference} has no checkout page yet: ${error.message} ${next}`);
    }
  }

  async #request({ reference, amount }: Order): Promise<void> {
    const invoice = await this.payments.post<Invoice | undefined>(this.settings.checkoutPath, {
      body: { amount, externalReference: reference },
      deadlineMs: DEADLINE_MS,
    });
    const { transactionId, checkoutUrl } = invoice ?? {};
    // Without it, the expectation looks for the transaction by the reference.
    if (typeof transactionId === 'string') {
      traceTransaction(transactionId);
      await this.expectations.attach(reference, { transactionId });
    }
    if (typeof checkoutUrl === 'string' && URL.canParse(checkoutUrl)) {
      return this.database.setCheckoutUrl(reference, checkoutUrl);
    }
    this.#logger.warn(
      `Order ${reference} has no checkout page: the response has no valid checkoutUrl`,
    );
  }
}
