import type { EmulatorClock } from '../clock/emulator.clock.js';
import type { Company, Environment } from '../companies/company.record.js';
import { EmulatorError } from '../emulator.errors.js';
import type { RandomSource } from '../random/random.source.js';
import type { NewPayment } from './transaction.inputs.js';
import type { Transaction, TransactionKind } from './transaction.record.js';
import { COMPLETE } from './transaction.record.js';

/** Bounds and words of the book. */
export interface TransactionBookOptions {
  /** The status before completion, which the service's page does not show. */
  readonly pendingStatus: string;
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
    const transactionId = this.random.uuid('transaction');
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
      createdAt: new Date(this.clock.now()).toISOString(),
      completedAt: undefined,
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

  /** @throws EmulatorError `not_found`, or `conflict` where it is complete already */
  complete(transactionId: string): Transaction {
    const before = this.get(transactionId);
    if (before.completedAt !== undefined) {
      throw new EmulatorError('conflict', `transaction ${transactionId} is complete already`);
    }
    const completedAt = new Date(this.clock.now()).toISOString();
    const transaction = { ...before, status: COMPLETE, completedAt };
    this.#transactions.set(transactionId, transaction);
    return transaction;
  }

  all(): Transaction[] {
    return [...this.#transactions.values()];
  }

  clear(): void {
    this.#transactions.clear();
  }
}
