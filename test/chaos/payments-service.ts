import { once } from 'node:events';
import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import type { PlannedPayment } from './payment-plan.js';
import type { SeededRandom } from './seeded-random.js';

export interface ServiceTransaction {
  readonly transactionId: string;
  readonly payment: PlannedPayment;
  status: 'open' | 'complete' | 'declined';
  /** Whether the service returns the transaction as declined although it is paid. */
  contradicted: boolean;
}

/** The duration of a response that hangs, in milliseconds. */
const HANG_MS = 2000;

/**
 * The payments service of a chaos run. Each `POST /chaos/payments` creates a transaction, so that a repeated request is
 * visible. Until {@link PaymentsService.reliable} is set, lookups also respond with 404 or 503, hang, or close the connection.
 */
export class PaymentsService implements AsyncDisposable {
  readonly transactions: ServiceTransaction[] = [];
  /** Whether lookups have no faults. */
  reliable = false;
  /** The number of lookups so far. */
  lookups = 0;
  readonly #server = createServer((request, response) => void this.#handle(request, response));
  readonly #payments: ReadonlyMap<string, PlannedPayment>;
  readonly #timers = new Set<NodeJS.Timeout>();

  private constructor(
    payments: readonly PlannedPayment[],
    private readonly random: SeededRandom,
    private readonly onPaid: (transaction: ServiceTransaction) => void,
  ) {
    this.#payments = new Map(payments.map((payment) => [payment.reference, payment]));
  }

  /** Starts the service. It calls `onPaid` when a customer has paid. */
  static async start(
    payments: readonly PlannedPayment[],
    random: SeededRandom,
    onPaid: (transaction: ServiceTransaction) => void,
  ): Promise<PaymentsService> {
    const service = new PaymentsService(payments, random, onPaid);
    service.#server.listen(0, '127.0.0.1');
    await once(service.#server, 'listening');
    return service;
  }

  /** The address of the service, without a path. */
  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Whether each customer has paid or declined. */
  get idle(): boolean {
    return this.#timers.size === 0;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const timer of this.#timers) clearTimeout(timer);
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      this.#respond(request, response, await text(request));
    } catch {
      // The process of the application was killed during its request.
      response.destroy();
    }
  }

  #respond({ method, url = '' }: IncomingMessage, response: ServerResponse, body: string): void {
    const { pathname, searchParams } = new URL(url, this.url);
    const respond = (status: number, value: unknown): void => {
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));
    };
    if (pathname === '/v1/auth/token') {
      return respond(200, { access_token: 'chaos', expires_in: '3599', token_type: 'Bearer' });
    }
    if (method === 'POST') {
      const { externalReference } = JSON.parse(body) as { externalReference: string };
      const { transactionId, payment } = this.#create(externalReference);
      return payment.losesResponse ? void response.destroy() : respond(201, { transactionId });
    }
    this.lookups += 1;
    const drawn = this.reliable ? 1 : this.random.next();
    if (drawn < 0.1) return respond(404, {});
    if (drawn < 0.2) return respond(503, {});
    if (drawn < 0.25) return void response.destroy();
    const delayMs = drawn < 0.28 ? HANG_MS : 0;
    setTimeout(() => {
      const id = pathname.slice('/v1/transactions/'.length);
      const reference = searchParams.get('externalReference');
      const found = this.transactions.filter(({ transactionId, payment }) =>
        reference === null ? transactionId === id : payment.reference === reference,
      );
      if (reference !== null) return respond(200, { transactions: found.map(toBody) });
      return found[0] === undefined ? respond(404, {}) : respond(200, toBody(found[0]));
    }, delayMs);
  }

  #create(reference: string): ServiceTransaction {
    const payment = this.#payments.get(reference)!;
    const transaction: ServiceTransaction = {
      transactionId: `transaction-of-${reference}-${this.transactions.length}`,
      payment,
      status: 'open',
      contradicted: false,
    };
    this.transactions.push(transaction);
    if (payment.outcome === 'never') return transaction;
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      transaction.status = payment.outcome === 'paid' ? 'complete' : 'declined';
      if (transaction.status === 'complete') this.onPaid(transaction);
    }, payment.delayMs);
    this.#timers.add(timer);
    return transaction;
  }
}

function toBody({ transactionId, payment, status, contradicted }: ServiceTransaction): object {
  const { reference: externalReference, actions } = payment;
  const shown = contradicted ? 'declined' : status;
  return { transactionId, externalReference, status: shown, ...(actions && { actions }) };
}
