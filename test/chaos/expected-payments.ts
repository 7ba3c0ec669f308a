import { setTimeout } from 'node:timers/promises';
import type { ApplicationFleet } from './application-fleet.js';
import type { ReportedExpectation } from './application-protocol.js';
import { ONCE_PER_TRANSACTION } from './event-plan.js';
import { OVERDUE_PREFIX } from './payment-plan.js';
import type { PlannedPayment } from './payment-plan.js';
import { PaymentsService } from './payments-service.js';
import type { ServiceTransaction } from './payments-service.js';
import type { SeededRandom } from './seeded-random.js';
import type { Sender } from './sender.js';

/**
 * The maximum time that the polls of contradicted payments may take, in milliseconds. A run of several minutes has a
 * thousand such payments.
 */
const CONTRADICT_MS = 120_000;

/** The expected payments of a chaos run: purchases, customers that pay, and webhook requests if there are any. */
export class ExpectedPayments {
  #service!: PaymentsService;
  #swept = false;

  constructor(
    private readonly payments: readonly PlannedPayment[],
    private readonly sender: Sender,
    private readonly signal: AbortSignal,
  ) {}

  async startService(random: SeededRandom): Promise<PaymentsService> {
    this.#service = await PaymentsService.start(this.payments, random, (transaction) => {
      if (transaction.payment.webhook) void this.#notify(transaction).catch(() => {});
    });
    return this.#service;
  }

  /** Sends all purchases, and waits until each customer has paid or declined. */
  async purchase(): Promise<void> {
    await this.sender.purchase(this.payments, this.signal);
    while (!this.#service.idle) await setTimeout(50, undefined, { signal: this.signal });
  }

  /**
   * Returns the number of payments that are still expected, although they have a result or their schedule has ended.
   */
  async unfinished(fleet: ApplicationFleet): Promise<number> {
    const requested = new Set(this.#service.transactions.map(({ payment }) => payment.reference));
    const expectations = await fleet.request<ReportedExpectation[]>('expectations');
    const ends = new Set(
      this.payments.flatMap(({ reference, outcome }) =>
        requested.has(reference) || outcome === 'never' ? reference : [],
      ),
    );
    return expectations.filter(
      ({ reference, state }) =>
        ends.has(reference) &&
        (state === 'waiting' ||
          (this.#swept && state === 'overdue' && !reference.startsWith(OVERDUE_PREFIX))),
    ).length;
  }

  /**
   * Ends the faults of the service and polls all open payments, as an operator does after an outage. On SQLite, the jump of
   * a wall clock may have ended the schedule of a payment early.
   */
  async sweep(sweep: () => Promise<unknown>): Promise<void> {
    this.#service.reliable = true;
    this.#swept = true;
    await sweep();
  }

  /** Polls all payments again. The service now returns some paid transactions as declined. */
  async contradict(fleet: ApplicationFleet): Promise<void> {
    const contradicted = this.#service.transactions.filter((one) => one.contradicted);
    const end = performance.now() + CONTRADICT_MS;
    const references = new Set(contradicted.map(({ payment }) => payment.reference));
    for (let left = references.size; left > 0 && performance.now() < end;) {
      await fleet.request('ask').catch(() => {});
      // The more payments, the longer their polls take. A second request too soon would only add polls.
      await setTimeout(references.size * 50, undefined, { signal: this.signal });
      const all = await fleet.request<ReportedExpectation[]>('expectations').catch(() => []);
      const shown = all.filter(
        ({ reference, contradiction }) => contradiction !== null && references.has(reference),
      );
      left = references.size - shown.length;
    }
  }

  /** Sends the webhook request of a paid transaction. */
  async #notify(transaction: ServiceTransaction): Promise<void> {
    const { transactionId, payment } = transaction;
    const { reference, actions, contradicts, target } = payment;
    const event = {
      id: `webhook:${transactionId}:${ONCE_PER_TRANSACTION}`,
      eventType: ONCE_PER_TRANSACTION,
      transactionId,
      reference,
      actions,
      handlers: [],
      poisoned: [],
      copies: [{ atMs: 0, target }],
    };
    await this.sender.send([event], this.signal);
    if (contradicts) transaction.contradicted = true;
  }
}
