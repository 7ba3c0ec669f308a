import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import type {
  ClientSecretInput,
  NewCompany,
  RevocationInput,
  WebhookInput,
  WebhookSecretInput,
} from './companies/company.inputs.js';
import type { CompanyCredentials } from './companies/company.record.js';
import { toCredentials } from './companies/company.record.js';
import { DeliveryFilter } from './deliveries/delivery.inputs.js';
import type { DeliveryRecord } from './deliveries/delivery.record.js';
import type { WebhookEvent } from './deliveries/webhook.event.js';
import type { CompletedTransaction } from './emulator.core.js';
import { EmulatorCore } from './emulator.core.js';
import { EmulatorError } from './emulator.errors.js';
import { logMistakes } from './emulator.logger.js';
import { checkInput } from './emulator.input.js';
import type { PaymentsEmulatorOptions } from './emulator.options.js';
import { resolveOptions } from './emulator.options.js';
import { startServer } from './emulator.server.js';
import type { FaultPlan } from './faults/fault.plan.js';
import { readPageFiles } from './pages/page.files.js';
import type {
  NewCompanyPayment,
  NewEvent,
  NewTransaction,
} from './transactions/transaction.inputs.js';
import type { Transaction } from './transactions/transaction.record.js';
import type { TriggeredEvent } from './trigger/trigger.js';
import { triggerEvent } from './trigger/trigger.js';
import type { TriggerInput } from './trigger/trigger-input.js';

/** A checkout invoice with the address a customer pays it at. */
export interface CheckoutInvoice extends Transaction {
  readonly checkoutUrl: string;
}

/**
 * A running emulator of the payments service: two hosts, sandbox and production, and the controls
 * that make the service do things, both as methods and, over HTTP, under `/emulator/`.
 *
 * Methods throw `EmulatorInputError` (a `TypeError`) for malformed input, else `EmulatorError`.
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
    const resolved = resolveOptions(options);
    const onDelivery = logMistakes(resolved.onDelivery);
    this.#core = new EmulatorCore({ ...resolved, onDelivery });
  }

  /**
   * Starts an emulator, ready with one company.
   *
   * @throws EmulatorInputError for options out of bounds, and Node's own error if a port is in use.
   */
  static async start(options?: PaymentsEmulatorOptions): Promise<PaymentsEmulator> {
    const emulator = new PaymentsEmulator(options);
    await emulator.#listen();
    return emulator;
  }

  /** The sandbox host's base address, without `/v1`. */
  get baseUrl(): string {
    return this.#core.hosts.sandbox.url;
  }

  /** The production host's base address, without `/v1`. */
  get productionBaseUrl(): string {
    return this.#core.hosts.production.url;
  }

  /** The seed of this run: another emulator with it and the same calls behaves the same. */
  get seed(): string {
    return this.#core.random.seed;
  }

  /** What the controls and pages demand; undefined if only this machine can reach them and no token was given. */
  get controlToken(): string | undefined {
    return this.#core.options.controlToken;
  }

  /** The company it started with, as it stands now. */
  get company(): CompanyCredentials {
    return toCredentials(this.#core.companies.get());
  }

  /** Creates a company; what is left out is made up. `conflict` where the id is taken. */
  createCompany(company: NewCompany = {}): CompanyCredentials {
    return toCredentials(this.#core.companies.create(company));
  }

  /** Every company, in the order of creation. */
  companies(): CompanyCredentials[] {
    return this.#core.companies.all().map(toCredentials);
  }

  /** Changes the URL, the secret or the active flag of a webhook; what is left out stays. */
  setWebhook(webhook: WebhookInput): CompanyCredentials {
    return toCredentials(this.#core.companies.setWebhook(webhook));
  }

  /** Gives a webhook another secret. Deliveries are signed with it from now on. */
  rotateWebhookSecret(rotation: WebhookSecretInput = {}): CompanyCredentials {
    return toCredentials(this.#core.companies.rotateWebhookSecret(rotation));
  }

  /** Gives a client another secret. The old one is refused at once; its tokens work on. */
  rotateClientSecret(rotation: ClientSecretInput = {}): CompanyCredentials {
    return toCredentials(this.#core.companies.rotateClientSecret(rotation));
  }

  /** Refuses the tokens issued so far: of one environment, or of both. */
  revokeTokens(revocation: RevocationInput = {}): void {
    this.#core.companies.revokeTokens(revocation);
  }

  /** Replaces a company's faults. Default company: the one it started with. */
  setFaults(plan: FaultPlan, companyId?: string): void {
    this.#core.faults.set(this.#core.companies.get(companyId).companyId, plan);
  }

  /** A company's faults as they stand: each `next` is what is left of it. */
  faults(companyId?: string): FaultPlan {
    return this.#core.faults.get(this.#core.companies.get(companyId).companyId);
  }

  /** Creates a transaction of the kind named. */
  createTransaction(transaction: NewTransaction): Transaction {
    return this.#core.createTransaction(transaction);
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

  /** A transaction of any company. `not_found` where there is none. */
  transaction(transactionId: string): Transaction {
    return this.#core.transactions.get(transactionId);
  }

  /** Every transaction, in the order of creation. */
  transactions(): Transaction[] {
    return this.#core.transactions.list();
  }

  /** Completes a transaction and sends `transaction.completed`. `conflict` if it is complete or failed already. */
  complete(transactionId: string): CompletedTransaction {
    return this.#core.complete(transactionId);
  }

  /** Declines a transaction; no event is sent, as the service shows none. `conflict` if it is complete or failed already. */
  fail(transactionId: string): Transaction {
    return this.#core.fail(transactionId);
  }

  /** Sends an event of any type, types the service's page does not show included. */
  sendEvent(event: NewEvent): WebhookEvent {
    return this.#core.sendEvent(event).event;
  }

  /**
   * Sends an event and resolves when its first delivery has ended, whatever the outcome.
   * `transaction.completed` completes a new transaction, or the one named by `transactionId`.
   */
  trigger(trigger: TriggerInput): Promise<TriggeredEvent> {
    return triggerEvent(this.#core, trigger);
  }

  /** The delivery log: every attempt that matches, in the order they came to be. */
  deliveries(filter: DeliveryFilter = {}): DeliveryRecord[] {
    return this.#core.log.list(checkInput(DeliveryFilter, filter));
  }

  /** Sends the event of a logged delivery again, without faults, and resolves with the attempt when it has ended. */
  redeliver(deliveryId: string): Promise<DeliveryRecord> {
    return this.#core.deliveries.redeliver(deliveryId);
  }

  /** Resolves once no delivery is under way, waits, or is to be redelivered. */
  idle(): Promise<void> {
    return this.#core.deliveries.idle();
  }

  /** Cuts every delay, reordering and redelivery time short, then resolves as `idle()` does. */
  flush(): Promise<void> {
    return this.#core.deliveries.flush();
  }

  /**
   * Starts over on the same addresses: cancels deliveries under way, refuses tokens issued so far, and restores
   * companies, credentials, transactions, faults and the log of the start.
   */
  async reset(): Promise<void> {
    if (this.#closing) throw new EmulatorError('closed', 'the emulator has been closed');
    await this.#core.reset();
  }

  /** Cancels what is under way and stops listening. May be called again. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #listen(): Promise<void> {
    const { port, productionPort, publicUrl, productionPublicUrl, company } = this.#core.options;
    const { sandbox, production } = this.#core.hosts;
    try {
      await this.#core.requirePublicHost('webhookUrl', company.webhookUrl);
      const files = await readPageFiles();
      this.#servers.push(await startServer(this.#core, sandbox, port, publicUrl, files));
      this.#servers.push(
        await startServer(this.#core, production, productionPort, productionPublicUrl, files),
      );
    } catch (error) {
      await this.close();
      throw error;
    }
  }

  async #close(): Promise<void> {
    await this.#core.end();
    await Promise.all(this.#servers.map((server) => server.close()));
  }
}
