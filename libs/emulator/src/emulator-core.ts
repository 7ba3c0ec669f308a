import { TokenExchange } from './auth/token-exchange.js';
import { TokenIssuer } from './auth/token-issuer.js';
import { validateInput } from './validate-input.js';
import { CheckoutSessions } from './checkout/checkout-sessions.js';
import type { Company, Environment } from './companies/company.js';
import { CompanyStore } from './companies/company-store.js';
import { PRIVATE_WEBHOOK } from './companies/webhook-url.js';
import { ControlToken } from './controls/control-token.js';
import { AttemptRunner } from './deliveries/attempt-runner.js';
import { eventIn, NewBody } from './deliveries/delivery-inputs.js';
import { DeliveryLog } from './deliveries/delivery-log.js';
import { DeliveryQueue } from './deliveries/delivery-queue.js';
import type { DeliveryAttempt } from './deliveries/delivery-attempt.js';
import type { WebhookEvent } from './deliveries/delivery-request.js';
import { isPublicHost } from './deliveries/public-fetch.js';
import { EmulatorInputError } from './emulator-errors.js';
import type { ResolvedEmulatorOptions } from './emulator-options.js';
import type { FaultPlan } from './faults/fault-plan.js';
import { FaultStore } from './faults/fault-store.js';
import { EnvironmentAddress } from './http/environment-address.js';
import { RandomSource } from './runtime/random-source.js';
import type { Transaction, TransactionKind } from './transactions/transaction.js';
import { toTransactionFields } from './transactions/transaction.js';
import { LaterCompletions } from './transactions/later-completions.js';
import { LaterCompletion, NewEvent, NewTransaction } from './transactions/transaction-inputs.js';
import { TransactionStore } from './transactions/transaction-store.js';

export interface SentEvent {
  readonly event: WebhookEvent;
  /** Resolves with the first attempt after the attempt has ended. Never rejects. */
  readonly firstAttempt: Promise<DeliveryAttempt>;
}

/** A completed transaction and its event. */
export interface CompletedTransaction {
  readonly transaction: Transaction;
  readonly event: WebhookEvent;
}

/** The emulator without its HTTP servers: its components, and the operations that involve several of them. */
export class EmulatorCore {
  readonly addresses: Readonly<Record<Environment, EnvironmentAddress>>;
  readonly random: RandomSource;
  readonly companies: CompanyStore;
  /** Verifies the token that the controls require. Undefined if the controls require no token. */
  readonly controlToken: ControlToken | undefined;
  readonly faults: FaultStore;
  readonly issuer: TokenIssuer;
  readonly tokenExchange: TokenExchange;
  readonly transactions: TransactionStore;
  readonly checkout: CheckoutSessions;
  readonly log: DeliveryLog;
  readonly deliveries: DeliveryQueue;
  readonly #laterCompletions: LaterCompletions;
  #abort = new AbortController();

  constructor(readonly options: ResolvedEmulatorOptions) {
    const { clock } = options;
    this.addresses = {
      sandbox: new EnvironmentAddress('sandbox', options.host),
      production: new EnvironmentAddress('production', options.host),
    };
    this.random = new RandomSource(options.seed, options.freshIds);
    this.companies = new CompanyStore(this.random, options.maxCompanies, options.webhookPolicy);
    this.controlToken =
      options.controlToken === undefined ? undefined : new ControlToken(options.controlToken);
    this.faults = new FaultStore(this.random, options.redeliver);
    this.issuer = new TokenIssuer(this.companies, clock, this.random);
    this.tokenExchange = new TokenExchange(
      this.companies,
      this.issuer,
      this.faults,
      clock,
      options.tokenLifetime,
    );
    this.transactions = new TransactionStore(this.random, clock, {
      ...options,
      checkoutUrl: (environment, id) => this.addresses[environment].checkoutUrl(id),
    });
    // The transaction store is bounded, and may have removed the transaction in the meantime.
    const complete = (id: string) => void (this.transactions.isOpen(id) && this.complete(id));
    this.#laterCompletions = new LaterCompletions(clock, complete);
    this.checkout = new CheckoutSessions({
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
      new AttemptRunner(this.faults, this.log, clock, this.random, {
        ...options,
        timeoutMs: options.deliveryTimeout,
      }),
      clock,
    );
    this.#createCompanies();
  }

  /** A signal that aborts when the emulator is next reset or closed. */
  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  /**
   * Checks that the host of a webhook URL is public, if the options require this. Ignores values that are not URLs,
   * because other checks reject them.
   *
   * @throws EmulatorInputError if the URL points to this machine or a private network
   */
  async requirePublicHost(field: string, url: unknown): Promise<void> {
    const { webhookPolicy, lookup } = this.options;
    const parsed = typeof url === 'string' ? URL.parse(url) : null;
    if (!webhookPolicy.publicOnly || parsed === null) return;
    if (await isPublicHost(parsed.hostname, { lookup })) return;
    throw new EmulatorInputError([`${field} ${PRIVATE_WEBHOOK}`]);
  }

  /**
   * Sets one fault of a company, or removes the fault if `value` is undefined. Returns the fault plan after the change.
   */
  changeFault(
    company: string | undefined,
    target: string,
    fault: string,
    value: unknown,
  ): FaultPlan {
    const { companyId } = this.companies.get(company);
    this.faults.change(companyId, target, fault, value);
    return this.faults.get(companyId);
  }

  createTransaction(input: unknown): Transaction {
    const {
      kind,
      companyId,
      environment = 'sandbox',
      ...payment
    } = validateInput(NewTransaction, input);
    return this.transactions.create(kind, this.companies.get(companyId), environment, payment);
  }

  createPayment(kind: TransactionKind, input: object): Transaction {
    return this.createTransaction({ ...input, kind });
  }

  /** Completes a transaction and sends `transaction.completed`. */
  complete(transactionId: string): CompletedTransaction {
    const { transaction, event } = this.completeAndSend(transactionId);
    return { transaction, event };
  }

  /** Does the same as {@link complete}, and also returns a promise of the first delivery attempt. */
  completeAndSend(transactionId: string): CompletedTransaction & SentEvent {
    const transaction = this.transactions.complete(transactionId);
    this.#laterCompletions.cancel(transactionId);
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

  /** Declines a transaction. The emulator sends no event, because the service documents no event for a decline. */
  fail(transactionId: string): Transaction {
    const transaction = this.transactions.fail(transactionId);
    this.#laterCompletions.cancel(transactionId);
    return transaction;
  }

  /** Completes a transaction at a later time, unless it is completed or declined before. The input contains `delayMs`. */
  completeLater(transactionId: string, input: unknown): Transaction {
    const { delayMs } = validateInput(LaterCompletion, input);
    const transaction = this.transactions.schedule(transactionId, delayMs);
    this.#laterCompletions.schedule(transactionId, delayMs);
    return transaction;
  }

  sendEvent(input: unknown): SentEvent {
    const {
      companyId,
      environment = 'sandbox',
      eventType,
      data,
      metadata,
    } = validateInput(NewEvent, input);
    return this.send(this.companies.get(companyId), environment, eventType, data, metadata);
  }

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

  /** Signs the bytes of a body and sends them unchanged. Resolves with the first attempt after it has ended. */
  sendBody(input: unknown): Promise<DeliveryAttempt> {
    const { companyId, environment = 'sandbox', body } = validateInput(NewBody, input);
    const original = Buffer.from(body, 'base64');
    const company = this.companies.get(companyId);
    return this.deliveries.enqueue(company, environment, eventIn(original), original);
  }

  /** Cancels all deliveries and restores the state that the emulator had after its start. */
  async reset(): Promise<void> {
    await this.end();
    this.#abort = new AbortController();
    this.companies.clear();
    this.faults.clear();
    this.issuer.reset();
    this.transactions.clear();
    this.checkout.clear();
    this.log.clear();
    this.random.reset();
    this.#createCompanies();
  }

  /** Cancels all deliveries, all delays of responses, and all scheduled completions of transactions. */
  async end(): Promise<void> {
    this.#abort.abort();
    this.#laterCompletions.clear();
    await this.deliveries.cancel();
  }

  #createCompanies(): void {
    const { companies, faults } = this.options;
    for (const company of companies) this.companies.create(company);
    this.faults.set(this.companies.get().companyId, faults);
  }
}
