import { Inject, Injectable, Logger } from '@nestjs/common';
import { OnPaymentEvent, PaymentsApiService } from 'nestjs-payments';
import type { PaymentEvent, PaymentEventContext } from 'nestjs-payments';
import { Books } from '../books/books.js';
import type { LedgerEntry } from '../ledger/ledger.entry.js';
import { LiveBooks } from '../live/live.books.js';
import { Orders } from '../orders/orders.service.js';
import { shopConfig } from '../shop.config.js';
import type { ShopSettings } from '../shop.config.js';
import { CompletedPayment } from './completed-payment.dto.js';

/** Books the payments the service tells of. */
@Injectable()
export class Bookkeeper {
  readonly #logger = new Logger(Bookkeeper.name);

  constructor(
    private readonly payments: PaymentsApiService,
    private readonly orders: Orders,
    private readonly books: Books,
    private readonly live: LiveBooks,
    @Inject(shopConfig.KEY) private readonly settings: ShopSettings,
  ) {}

  /**
   * Books a payment once, however often it is told of. What is thrown here makes the module try again.
   *
   * What is slow comes first, and the booking last: it is committed together with the delivery, so that neither
   * a crash nor a second run on another machine finds the one without the other.
   */
  @OnPaymentEvent('transaction.completed', { name: 'bookkeeper', data: CompletedPayment })
  async bookPayment(
    { data }: PaymentEvent<'transaction.completed', CompletedPayment>,
    { commit, signal }: PaymentEventContext,
  ): Promise<void> {
    const { transactionId, amount, externalReference: reference = null } = data;
    // By an earlier run or another event: the service need not be asked again.
    if (await this.books.isBooked(transactionId)) return;
    await this.#assertPaid(transactionId, signal);
    const entry = await commit((tx) => this.books.book(tx, { transactionId, reference, amount }));
    if (entry === null) return;
    this.live.booked();
    await this.#tell(entry);
  }

  /** The event says what happened; whether it holds, the API alone knows. */
  async #assertPaid(transactionId: string, signal: AbortSignal): Promise<void> {
    // Of the answer only `status` is relied on: the service's page shows no field of it.
    const { status } = await this.payments.getTransaction(transactionId, { signal });
    if (status === this.settings.paidStatus) return;
    throw new Error(
      `Transaction ${transactionId} is not booked: the service says its status is ` +
        `${JSON.stringify(status)}, not ${JSON.stringify(this.settings.paidStatus)}`,
    );
  }

  async #tell({ transactionId, reference, amount }: LedgerEntry): Promise<void> {
    // Quoted: whoever pays may choose it, line breaks and all.
    const whom = reference === null ? 'no reference' : JSON.stringify(reference);
    const booked = `Booked ${amount} for ${whom} (transaction ${transactionId})`;
    const order = reference === null ? undefined : await this.orders.find(reference);
    if (order === undefined) {
      this.#logger.warn(`${booked}, which matches no order`);
    } else if (order.amountPaid === undefined) {
      this.#logger.log(`${booked}: the order is paid`);
    } else {
      const { status, amountPaid } = order;
      this.#logger.warn(`${booked}: the order is ${status}, with ${amountPaid} of ${order.amount}`);
    }
  }
}
