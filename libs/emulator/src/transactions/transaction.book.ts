import type { EmulatorClock } from '../clock/emulator.clock.js';
import type { Company, Environment } from '../companies/company.record.js';
import { EmulatorError } from '../emulator.errors.js';
import type { RandomSource } from '../random/random.source.js';
import { normalisePhoneNumber } from './phone.number.js';
import type { NewPayment, TransactionFilter } from './transaction.inputs.js';
import type { Transaction, TransactionKind } from './transaction.record.js';
import { COMPLETE, isOpen } from './transaction.record.js';

/** Bounds and words of the book. */
export interface TransactionBookOptions {
  /** The status before completion, which the service's page does not show. */
  readonly pendingStatus: string;
  /** The status after a decline, which the service's page does not show. */
  readonly failedStatus: string;
  /** How many transactions are kept; the oldest leaves first. */
  readonly maxTransactions: number;
  /** Where a checkout invoice is paid. */
  readonly checkoutUrl: (environment: Environment, transactionId: string) => string;
}

/** Every transaction, of every company. */
export class TransactionBook {
  readonly #transactions = new Map<string, Transaction>();

  constructor(
    private readonly random: RandomSource,
    private readonly clock: EmulatorClock,
    private readonly options: TransactionBookOptions,
  ) {}

  create(
    kind: TransactionKind,
    company: Company,
    environment: Environment,
    payment: NewPayment,
  ): Transaction {
    const transactionId = this.random.id('transaction');
    const transaction: Transaction = {
      transactionId,
      companyId: company.companyId,
      environment,
      kind,
      status: this.options.pendingStatus,
      amount: payment.amount,
      accountReference: payment.accountReference ?? payment.externalReference,
      externalReference: payment.externalReference,
      metadata: payment.metadata ?? {},
      checkoutUrl:
        kind === 'checkout-invoice'
          ? this.options.checkoutUrl(environment, transactionId)
          : undefined,
      returnUrl: payment.returnUrl,
      phoneNumber: normalisePhoneNumber(payment.phoneNumber),
      createdAt: this.#now(),
      completedAt: undefined,
      failedAt: undefined,
    };
    this.#transactions.set(transaction.transactionId, transaction);
    for (const id of this.#transactions.keys()) {
      if (this.#transactions.size <= this.options.maxTransactions) break;
      this.#transactions.delete(id);
    }
    return transaction;
  }

  /** @throws EmulatorError `not_found` */
  get(transactionId: string): Transaction {
    const transaction = this.#transactions.get(transactionId);
    if (transaction) return transaction;
    throw new EmulatorError('not_found', `there is no transaction ${transactionId}`);
  }

  /** The transaction as its company sees it on that host; another's is as if it did not exist. */
  find(transactionId: string, company: Company, environment: Environment): Transaction | undefined {
    const transaction = this.#transactions.get(transactionId);
    const visible =
      transaction?.companyId === company.companyId && transaction.environment === environment;
    return visible ? transaction : undefined;
  }

  /** @throws EmulatorError `not_found`, or `conflict` where it is complete or failed already */
  complete(transactionId: string): Transaction {
    return this.#settle(transactionId, { status: COMPLETE, completedAt: this.#now() });
  }

  /** @throws EmulatorError `not_found`, or `conflict` where it is complete or failed already */
  fail(transactionId: string): Transaction {
    const { failedStatus } = this.options;
    return this.#settle(transactionId, { status: failedStatus, failedAt: this.#now() });
  }

  /** In the order of creation. */
  list({ open, limit, ...wanted }: TransactionFilter = {}): Transaction[] {
    const asked = Object.entries(wanted).filter(([, value]) => value !== undefined);
    const found = [...this.#transactions.values()].filter(
      (each) =>
        (open === undefined || open === isOpen(each)) &&
        asked.every(([key, value]) => each[key as keyof Transaction] === value),
    );
    return limit === undefined ? found : found.slice(-limit);
  }

  clear(): void {
    this.#transactions.clear();
  }

  #settle(transactionId: string, end: Partial<Transaction>): Transaction {
    const before = this.get(transactionId);
    if (!isOpen(before)) {
      const how = before.completedAt === undefined ? 'has failed already' : 'is complete already';
      throw new EmulatorError('conflict', `transaction ${transactionId} ${how}`);
    }
    const transaction = { ...before, ...end };
    this.#transactions.set(transactionId, transaction);
    return transaction;
  }

  #now(): string {
    return new Date(this.clock.now()).toISOString();
  }
}
