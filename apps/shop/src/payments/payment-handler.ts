import type { Attributes } from '@opentelemetry/api';
import { IsNotEmpty, IsOptional, IsPositive, IsString } from 'class-validator';
import { Inject, Injectable, Logger } from '@nestjs/common';
import { OnPaymentEvent, PaymentsApiService } from 'nestjs-payments';
import type { PaymentEvent, PaymentEventContext } from 'nestjs-payments';
import { ShopDatabase } from '../database/shop-database.js';
import type { LedgerEntry } from '../ledger/ledger-entry.js';
import { OrdersService } from '../orders/orders.service.js';
import { shopConfig } from '../shop-config.js';
import type { ShopSettings } from '../shop-config.js';
import { inSpan, traceTransaction } from '../tracing.js';

/**
 * The fields of `data` in a `transaction.completed` event that the shop uses. The payments module validates each event
 * before it calls the handler.
 */
export class CompletedPaymentDto {
  @IsString()
  @IsNotEmpty()
  transactionId!: string;

  @IsPositive()
  amount!: number;

  /** Reference of the order. Payments that the shop did not request may have no reference. */
  @IsOptional()
  @IsString()
  externalReference?: string | null;
}

/** Records completed payments in the ledger. */
@Injectable()
export class PaymentHandler {
  readonly #logger = new Logger(PaymentHandler.name);

  constructor(
    private readonly payments: PaymentsApiService,
    private readonly database: ShopDatabase,
    private readonly orders: OrdersService,
    @Inject(shopConfig.KEY) private readonly settings: ShopSettings,
  ) {}

  /**
   * Records a payment once, even if several events report the payment. If this method throws, the payments module
   * retries the delivery.
   *
   * The slow API call comes before `commit`, so that no transaction is open during the call. The call of `commit` comes
   * last: one transaction adds the ledger entry and sets the delivery to done. Therefore neither a crash nor an attempt
   * in another process can lose or duplicate the payment.
   */
  @OnPaymentEvent('transaction.completed', { name: 'record-payment', data: CompletedPaymentDto })
  async recordPayment(
    { data }: PaymentEvent<'transaction.completed', CompletedPaymentDto>,
    { commit, signal, source }: PaymentEventContext,
  ): Promise<void> {
    const { transactionId, amount, externalReference: reference = null } = data;
    traceTransaction(transactionId);
    // An earlier attempt, or the handler of another event, has recorded the payment.
    if (await this.database.isRecorded(transactionId)) return;
    // A poll has just read the status.
    const foundByPoll = source === 'poll';
    if (!foundByPoll) await this.#assertPaid(transactionId, signal);
    const payment = { transactionId, reference, amount, foundByPoll };
    const entry = await inSpan('record in ledger', this.#ledgerAttributes(reference), () =>
      commit((tx) => this.database.recordPayment(tx, payment)),
    );
    if (entry === null) return;
    await this.#log(entry);
  }

  /**
   * Reads the status of the transaction from the API, because the event does not prove that the transaction is still
   * complete.
   */
  async #assertPaid(transactionId: string, signal: AbortSignal): Promise<void> {
    // The service does not document the fields of the response. The shop uses `status` only.
    const { status } = await this.payments.getTransaction(transactionId, { signal });
    if (status === this.settings.paidStatus) return;
    throw new Error(
      `Transaction ${transactionId} is not recorded: its status at the payments service is ` +
        `${JSON.stringify(status)}, not ${JSON.stringify(this.settings.paidStatus)}`,
    );
  }

  #ledgerAttributes(reference: string | null): Attributes {
    return {
      'db.system.name': this.settings.databaseUrl === undefined ? 'sqlite' : 'postgresql',
      ...(reference !== null && { 'payments.reference': reference }),
    };
  }

  async #log({ transactionId, reference, amount, foundByPoll }: LedgerEntry): Promise<void> {
    // JSON.stringify escapes line breaks, which a payer can put into the reference.
    const quoted = reference === null ? 'no reference' : JSON.stringify(reference);
    const asked = foundByPoll ? ', found by asking the service' : '';
    const recorded = `Recorded ${amount} for ${quoted} (transaction ${transactionId}${asked})`;
    const order = reference === null ? undefined : await this.orders.find(reference);
    if (order === undefined) {
      this.#logger.warn(`${recorded}, which matches no order`);
    } else if (order.amountPaid === undefined) {
      this.#logger.log(`${recorded}: the order is paid`);
    } else {
      const { status, amountPaid } = order;
      this.#logger.warn(
        `${recorded}: the order is ${status}, with ${amountPaid} of ${order.amount} paid`,
      );
    }
  }
}
