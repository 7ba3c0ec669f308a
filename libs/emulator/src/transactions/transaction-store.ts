import type { EmulatorClock } from '../runtime/emulator-clock.js';
import type { Company, Environment } from '../companies/company.js';
import { EmulatorError } from '../emulator-errors.js';
import type { RandomSource } from '../runtime/random-source.js';
import type { Transaction, TransactionKind } from './transaction.js';
import { COMPLETE, isOpen } from './transaction.js';
import type { NewPayment, TransactionFilter } from './transaction-inputs.js';
import { normalisePhoneNumber } from './transaction-validators.js';

export interface TransactionStoreOptions {
  /** The status of a transaction before it is complete. The service does not document this status. */
  readonly pendingStatus: string;
  /** The status of a declined transaction. The service does not document this status. */
  readonly failedStatus: string;
  /** Maximum number of transactions. If there are more, the oldest transaction is removed. */
  readonly maxTransactions: number;
  readonly checkoutUrl: (environment: Environment, transactionId: string) => string;
}

export class TransactionStore {
  readonly #transactions = new Map<string, Transaction>();

  constructor(
    private readonly random: RandomSource,
    private readonly clock: EmulatorClock,
    private readonly options: TransactionStoreOptions,
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
      completesAt: undefined,
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

  /** Returns a transaction if it belongs to the company and environment, otherwise undefined. */
  find(transactionId: string, company: Company, environment: Environment): Transaction | undefined {
    const transaction = this.#transactions.get(transactionId);
    const visible =
      transaction?.companyId === company.companyId && transaction.environment === environment;
    return visible ? transaction : undefined;
  }

  /**
   * Returns the transactions that have an external reference, in one environment of one company: at most 100, newest
   * first.
   */
  findByReference(
    externalReference: string,
    { companyId }: Company,
    environment: Environment,
  ): Transaction[] {
    return this.list({ companyId, externalReference })
      .filter((each) => each.environment === environment)
      .toReversed()
      .slice(0, 100);
  }

  /** @throws EmulatorError `not_found`, or `conflict` if the transaction is already complete or failed */
  schedule(transactionId: string, delayMs: number): Transaction {
    const completesAt = new Date(this.clock.now() + delayMs).toISOString();
    return this.#change(transactionId, { completesAt });
  }

  /** Whether a transaction exists and can still be completed or declined. */
  isOpen(transactionId: string): boolean {
    const transaction = this.#transactions.get(transactionId);
    return transaction !== undefined && isOpen(transaction);
  }

  /** @throws EmulatorError `not_found`, or `conflict` if the transaction is already complete or failed */
  complete(transactionId: string): Transaction {
    const closed = { status: COMPLETE, completedAt: this.#now(), completesAt: undefined };
    return this.#change(transactionId, closed);
  }

  /** @throws EmulatorError `not_found`, or `conflict` if the transaction is already complete or failed */
  fail(transactionId: string): Transaction {
    const { failedStatus } = this.options;
    const closed = { status: failedStatus, failedAt: this.#now(), completesAt: undefined };
    return this.#change(transactionId, closed);
  }

  /** Returns the matching transactions in the order of creation. */
  list({ open, limit, ...fields }: TransactionFilter = {}): Transaction[] {
    const criteria = Object.entries(fields).filter(([, value]) => value !== undefined);
    const found = [...this.#transactions.values()].filter(
      (each) =>
        (open === undefined || open === isOpen(each)) &&
        criteria.every(([key, value]) => each[key as keyof Transaction] === value),
    );
    return limit === undefined ? found : found.slice(-limit);
  }

  clear(): void {
    this.#transactions.clear();
  }

  #change(transactionId: string, changes: Partial<Transaction>): Transaction {
    const before = this.get(transactionId);
    if (!isOpen(before)) {
      const reason =
        before.completedAt === undefined ? 'has already failed' : 'is already complete';
      throw new EmulatorError('conflict', `transaction ${transactionId} ${reason}`);
    }
    const transaction = { ...before, ...changes };
    this.#transactions.set(transactionId, transaction);
    return transaction;
  }

  #now(): string {
    return new Date(this.clock.now()).toISOString();
  }
}
