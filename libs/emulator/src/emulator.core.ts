import { TokenDesk } from './auth/token.desk.js';
import { TokenIssuer } from './auth/token.issuer.js';
import { CompanyDirectory } from './companies/company.directory.js';
import { CheckoutDesk } from './checkout/checkout.desk.js';
import type { Company, Environment } from './companies/company.record.js';
import { PRIVATE_WEBHOOK } from './companies/webhook-url.js';
import { ControlToken } from './controls/control-token.js';
import { DeliveryAttempts } from './deliveries/delivery.attempt.js';
import { DeliveryLog } from './deliveries/delivery.log.js';
import { DeliveryQueue } from './deliveries/delivery.queue.js';
import type { DeliveryRecord } from './deliveries/delivery.record.js';
import type { WebhookEvent } from './deliveries/webhook.event.js';
import { isPublicHost } from './deliveries/public-fetch.js';
import { EmulatorInputError } from './emulator.errors.js';
import { EmulatorHost } from './emulator.host.js';
import { checkInput } from './emulator.input.js';
import type { ResolvedEmulatorOptions } from './emulator.options.js';
import { FaultDirectory } from './faults/fault.directory.js';
import { RandomSource } from './random/random.source.js';
import { TransactionBook } from './transactions/transaction.book.js';
import { NewCompanyPayment, NewEvent, NewTransaction } from './transactions/transaction.inputs.js';
import type { Transaction, TransactionKind } from './transactions/transaction.record.js';
import { toTransactionFields } from './transactions/transaction.record.js';

/** An event on its way, with the first attempt to deliver it. */
export interface SentEvent {
  readonly event: WebhookEvent;
  /** Resolves with that attempt once it has ended; never rejects. */
  readonly firstAttempt: Promise<DeliveryRecord>;
}

/** A transaction that was completed, with the event that tells of it. */
export interface CompletedTransaction {
  readonly transaction: Transaction;
  readonly event: WebhookEvent;
}

/** The emulator without its servers: the stations, and what goes through several of them. */
export class EmulatorCore {
  readonly hosts: Readonly<Record<Environment, EmulatorHost>>;
  readonly random: RandomSource;
  readonly companies: CompanyDirectory;
  /** What the controls demand; undefined if they demand nothing. */
  readonly controlToken: ControlToken | undefined;
  readonly faults: FaultDirectory;
  readonly issuer: TokenIssuer;
  readonly tokens: TokenDesk;
  readonly transactions: TransactionBook;
  readonly checkout: CheckoutDesk;
  readonly log: DeliveryLog;
  readonly deliveries: DeliveryQueue;
  #run = new AbortController();

  constructor(readonly options: ResolvedEmulatorOptions) {
    const { clock } = options;
    this.hosts = {
      sandbox: new EmulatorHost('sandbox', options.host),
      production: new EmulatorHost('production', options.host),
    };
    this.random = new RandomSource(options.seed, options.freshIds);
    this.companies = new CompanyDirectory(this.random, options.maxCompanies, options.webhookPolicy);
    this.controlToken =
      options.controlToken === undefined
        ? undefined
        : new ControlToken(options.controlToken, clock);
    this.faults = new FaultDirectory(this.random, options.redeliver);
    this.issuer = new TokenIssuer(this.companies, clock, this.random);
    this.tokens = new TokenDesk(
      this.companies,
      this.issuer,
      this.faults,
      clock,
      options.tokenLifetime,
    );
    this.transactions = new TransactionBook(this.random, clock, {
      ...options,
      checkoutUrl: (environment, id) => this.hosts[environment].checkoutUrl(id),
    });
    this.checkout = new CheckoutDesk({
      find: (id) => this.transactions.get(id),
      complete: (id) => this.complete(id),
      fail: (id) => this.fail(id),
      random: this.random,
      clock,
      limit: options.maxTransactions,
    });
    this.log = new DeliveryLog(options.logSize);
    this.deliveries = new DeliveryQueue(
      this.companies,
      this.faults,
      this.log,
      new DeliveryAttempts(this.faults, this.log, clock, this.random, {
        ...options,
        timeoutMs: options.deliveryTimeout,
      }),
      clock,
    );
    this.#open();
  }

  /** Aborted when this run ends, by a reset or a close. */
  get signal(): AbortSignal {
    return this.#run.signal;
  }

  /**
   * Resolves the host of a webhook URL, if it has to be public. What is no URL is left to the check of its form.
   *
   * @throws EmulatorInputError if it leads to this machine or a private network
   */
  async requirePublicHost(field: string, url: unknown): Promise<void> {
    const { webhookPolicy, lookup } = this.options;
    const parsed = typeof url === 'string' ? URL.parse(url) : null;
    if (!webhookPolicy.publicOnly || parsed === null) return;
    if (await isPublicHost(parsed.hostname, { lookup })) return;
    throw new EmulatorInputError([`${field} ${PRIVATE_WEBHOOK}`]);
  }

  /** Creates a transaction of the kind its input names. */
  createTransaction(input: unknown): Transaction {
    const {
      kind,
      companyId,
      environment = 'sandbox',
      ...payment
    } = checkInput(NewTransaction, input);
    return this.transactions.create(kind, this.companies.get(companyId), environment, payment);
  }

  /** Creates a transaction of a kind. */
  createPayment(kind: TransactionKind, input: unknown): Transaction {
    const { companyId, environment = 'sandbox', ...payment } = checkInput(NewCompanyPayment, input);
    return this.transactions.create(kind, this.companies.get(companyId), environment, payment);
  }

  /** Completes a transaction and sends `transaction.completed` (section 6 of the service's page). */
  complete(transactionId: string): CompletedTransaction {
    const { transaction, event } = this.completeAndSend(transactionId);
    return { transaction, event };
  }

  /** Like {@link complete}, with the first attempt to deliver the event. */
  completeAndSend(transactionId: string): CompletedTransaction & SentEvent {
    const transaction = this.transactions.complete(transactionId);
    const { companyId, environment, metadata } = transaction;
    const sent = this.send(
      this.companies.get(companyId),
      environment,
      'transaction.completed',
      { ...toTransactionFields(transaction) },
      metadata,
    );
    return { transaction, ...sent };
  }

  /** Declines a transaction. No event tells of it: the service's page shows none. */
  fail(transactionId: string): Transaction {
    return this.transactions.fail(transactionId);
  }

  /** Sends an event of any type. */
  sendEvent(input: unknown): SentEvent {
    const {
      companyId,
      environment = 'sandbox',
      eventType,
      data,
      metadata,
    } = checkInput(NewEvent, input);
    return this.send(this.companies.get(companyId), environment, eventType, data, metadata);
  }

  /** Puts an event into its envelope and on its way. */
  send(
    company: Company,
    environment: Environment,
    eventType: string,
    data: Readonly<Record<string, unknown>> = {},
    metadata: Readonly<Record<string, unknown>> = {},
  ): SentEvent {
    const event: WebhookEvent = {
      id: this.random.id('event'),
      eventType,
      timestamp: new Date(this.options.clock.now()).toISOString(),
      data,
      metadata,
    };
    return { event, firstAttempt: this.deliveries.enqueue(company, environment, event) };
  }

  /** Ends what is under way and starts over. */
  async reset(): Promise<void> {
    await this.end();
    this.#run = new AbortController();
    this.companies.clear();
    this.faults.clear();
    this.issuer.reset();
    this.transactions.clear();
    this.checkout.clear();
    this.log.clear();
    this.random.reset();
    this.#open();
  }

  /** Ends what is under way. */
  async end(): Promise<void> {
    this.#run.abort();
    await this.deliveries.cancel();
  }

  #open(): void {
    const company = this.companies.create(this.options.company);
    this.faults.set(company.companyId, this.options.faults);
  }
}
