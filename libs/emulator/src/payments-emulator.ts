import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { validateInput } from './validate-input.js';
import type { CompanyCredentials } from './companies/company.js';
import { toCredentials } from './companies/company.js';
import type {
  ClientSecretInput,
  NewCompany,
  RevocationInput,
  WebhookInput,
  WebhookSecretInput,
} from './companies/company-inputs.js';
import { DeliveryFilter } from './deliveries/delivery-inputs.js';
import type { NewBody } from './deliveries/delivery-inputs.js';
import type { DeliveryAttempt } from './deliveries/delivery-attempt.js';
import type { WebhookEvent } from './deliveries/delivery-request.js';
import type { CompletedTransaction } from './emulator-core.js';
import { EmulatorCore } from './emulator-core.js';
import { EmulatorError } from './emulator-errors.js';
import type { PaymentsEmulatorOptions } from './emulator-options.js';
import type { FaultPlan, FaultsOf } from './faults/fault-plan.js';
import { startServers } from './http/start-server.js';
import { resolveOptions } from './resolve-options.js';
import type { CheckoutInvoice, Transaction } from './transactions/transaction.js';
import type { NewCompanyPayment, NewEvent } from './transactions/transaction-inputs.js';
import { TransactionFilter } from './transactions/transaction-inputs.js';
import type { TriggeredEvent } from './trigger/trigger-event.js';
import { triggerEvent } from './trigger/trigger-event.js';
import type { TriggerInput } from './trigger/trigger-input.js';

/**
 * A running emulator of the payments service. The emulator has two hosts, sandbox and production. Its operations are
 * available as methods of this class and, over HTTP, under `/emulator/`.
 *
 * Methods throw `EmulatorInputError` (a `TypeError`) for invalid input, and `EmulatorError` for other errors.
 *
 * @example
 * await using emulator = await PaymentsEmulator.start({ webhookUrl });
 * const invoice = emulator.createCheckoutInvoice({ amount: 1500, externalReference: 'order-77' });
 * emulator.complete(invoice.transactionId);
 * await emulator.idle();
 */
export class PaymentsEmulator implements AsyncDisposable {
  readonly #core: EmulatorCore;
  readonly #servers: NestFastifyApplication[] = [];
  #closing: Promise<void> | undefined;

  private constructor(options: PaymentsEmulatorOptions | undefined) {
    this.#core = new EmulatorCore(resolveOptions(options));
  }

  /**
   * Starts an emulator with one company, or with the companies of the option `companies`.
   *
   * @throws EmulatorInputError for invalid options, and Node's error if a port is in use
   */
  static async start(options?: PaymentsEmulatorOptions): Promise<PaymentsEmulator> {
    const emulator = new PaymentsEmulator(options);
    try {
      for await (const server of startServers(emulator.#core)) emulator.#servers.push(server);
      return emulator;
    } catch (error) {
      await emulator.close();
      throw error;
    }
  }

  /** Base URL of the sandbox host, without `/v1`. */
  get baseUrl(): string {
    return this.#core.addresses.sandbox.url;
  }

  /** Base URL of the production host, without `/v1`. */
  get productionBaseUrl(): string {
    return this.#core.addresses.production.url;
  }

  /** The seed in use. Another emulator with the same seed and the same calls behaves in the same way. */
  get seed(): string {
    return this.#core.random.seed;
  }

  /**
   * The token that the controls and pages require. Undefined if only this machine can reach the emulator and the
   * options contain no token.
   */
  get controlToken(): string | undefined {
    return this.#core.options.controlToken;
  }

  /** The current state of the company that the emulator started with. */
  get company(): CompanyCredentials {
    return toCredentials(this.#core.companies.get());
  }

  /**
   * Creates a company. The emulator generates omitted ids and secrets. Throws `conflict` if the company id or a client
   * id is in use.
   */
  createCompany(company: NewCompany = {}): CompanyCredentials {
    return toCredentials(this.#core.companies.create(company));
  }

  /** Returns all companies in the order of creation. */
  companies(): CompanyCredentials[] {
    return this.#core.companies.all().map(toCredentials);
  }

  /** Changes the URL, the secret or the active flag of a webhook. An omitted field does not change the setting. */
  setWebhook(webhook: WebhookInput): CompanyCredentials {
    return toCredentials(this.#core.companies.setWebhook(webhook));
  }

  /** Rotates the secret of a webhook. The emulator signs later deliveries with the new secret. */
  rotateWebhookSecret(rotation: WebhookSecretInput = {}): CompanyCredentials {
    return toCredentials(this.#core.companies.rotateWebhookSecret(rotation));
  }

  /**
   * Rotates a client secret. The old secret is rejected at once; tokens that were issued with the old secret stay
   * valid.
   */
  rotateClientSecret(rotation: ClientSecretInput = {}): CompanyCredentials {
    return toCredentials(this.#core.companies.rotateClientSecret(rotation));
  }

  /** Revokes all tokens that were issued so far, in one environment or in both. */
  revokeTokens(revocation: RevocationInput = {}): void {
    this.#core.companies.revokeTokens(revocation);
  }

  /**
   * Replaces a company's fault plan. Without `companyId`, replaces the plan of the company that the emulator started
   * with.
   */
  setFaults(plan: FaultPlan, companyId?: string): void {
    this.#core.faults.set(this.#core.companies.get(companyId).companyId, plan);
  }

  /** Returns a company's current fault plan, in which the field `next` of a fault contains its remaining count. */
  faults(companyId?: string): FaultPlan {
    return this.#core.faults.get(this.#core.companies.get(companyId).companyId);
  }

  /**
   * Sets one fault of a company, for example `('delivery', 'off', true)`. The value undefined removes the fault. The
   * other faults do not change.
   */
  setFault<T extends keyof FaultPlan, N extends string & keyof FaultsOf<T>>(
    target: T,
    fault: N,
    value: FaultsOf<T>[N] | undefined,
    companyId?: string,
  ): void {
    this.#core.changeFault(companyId, target, fault, value);
  }

  /** Creates a checkout invoice. */
  createCheckoutInvoice(payment: NewCompanyPayment): CheckoutInvoice {
    return this.#core.createPayment('checkout-invoice', payment) as CheckoutInvoice;
  }

  /** Creates an STK push payment. */
  createStkPush(payment: NewCompanyPayment): Transaction {
    return this.#core.createPayment('stk-push', payment);
  }

  /** Creates a B2C payout. */
  createPayout(payment: NewCompanyPayment): Transaction {
    return this.#core.createPayment('payout', payment);
  }

  /** Returns a transaction of any company. Throws `not_found` if the transaction does not exist. */
  transaction(transactionId: string): Transaction {
    return this.#core.transactions.get(transactionId);
  }

  /** Returns the matching transactions in the order of creation. Default: all. */
  transactions(filter: TransactionFilter = {}): Transaction[] {
    return this.#core.transactions.list(validateInput(TransactionFilter, filter));
  }

  /**
   * Completes a transaction and sends `transaction.completed`. Throws `conflict` if the transaction is already complete
   * or failed.
   */
  complete(transactionId: string): CompletedTransaction {
    return this.#core.complete(transactionId);
  }

  /**
   * Completes a transaction `delayMs` milliseconds later by the emulator's clock (1 to 604,800,000), unless it is
   * completed or declined before. A second call for the transaction replaces the time. `idle` and `flush` do not wait
   * for the completion. Throws the same errors as {@link complete}.
   */
  completeLater(transactionId: string, delayMs: number): Transaction {
    return this.#core.completeLater(transactionId, { delayMs });
  }

  /**
   * Declines a transaction. The emulator sends no event, because the service documents no event for a decline. Throws
   * the same errors as {@link complete}.
   */
  fail(transactionId: string): Transaction {
    return this.#core.fail(transactionId);
  }

  /** Sends an event of any type, including types that the service does not document. */
  sendEvent(event: NewEvent): WebhookEvent {
    return this.#core.sendEvent(event).event;
  }

  /**
   * Sends an event. Resolves when the first delivery of the event has ended, even if this delivery failed. For
   * `transaction.completed`, completes a new transaction or the transaction with the given `transactionId`.
   */
  trigger(trigger: TriggerInput): Promise<TriggeredEvent> {
    return triggerEvent(this.#core, trigger);
  }

  /** Signs the bytes of a body and sends them unchanged. Resolves with the first attempt after it has ended. */
  sendBody(body: NewBody): Promise<DeliveryAttempt> {
    return this.#core.sendBody(body);
  }

  /** Returns the attempts of the delivery log that match the filter, in the order of their creation. */
  deliveries(filter: DeliveryFilter = {}): DeliveryAttempt[] {
    return this.#core.log.list(validateInput(DeliveryFilter, filter));
  }

  /**
   * Sends the event of a logged delivery again, without faults. Resolves with the new attempt after the attempt has
   * ended.
   */
  redeliver(deliveryId: string): Promise<DeliveryAttempt> {
    return this.#core.deliveries.redeliver(deliveryId);
  }

  /** Resolves when all deliveries have ended, including delayed deliveries and scheduled redeliveries. */
  idle(): Promise<void> {
    return this.#core.deliveries.idle();
  }

  /**
   * Skips the waiting times of all deliveries: delays, the wait for reordering, and the times before redeliveries.
   * Resolves when all deliveries have ended.
   */
  flush(): Promise<void> {
    return this.#core.deliveries.flush();
  }

  /**
   * Restores the state that the emulator had after its start. The addresses of the emulator stay the same. Cancels
   * deliveries, revokes all tokens, and resets companies, credentials, transactions, faults and the delivery log.
   */
  async reset(): Promise<void> {
    if (this.#closing) throw new EmulatorError('closed', 'the emulator has been closed');
    await this.#core.reset();
  }

  /** Cancels all deliveries and stops listening. Idempotent. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #close(): Promise<void> {
    await this.#core.end();
    await Promise.all(this.#servers.map((server) => server.close()));
  }
}
