import type { Company, Environment } from '../companies/company.js';
import type { CompanyStore } from '../companies/company-store.js';
import type { DrawnAttemptFaults, DrawnEventFaults } from '../faults/delivery-faults.js';
import type { FaultStore } from '../faults/fault-store.js';
import { Delays } from '../runtime/delays.js';
import type { EmulatorClock } from '../runtime/emulator-clock.js';
import type { AttemptRunner, Delivery } from './attempt-runner.js';
import type { DeliveryLog } from './delivery-log.js';
import type { DeliveryAttempt } from './delivery-attempt.js';
import type { WebhookEvent } from './delivery-request.js';
import { ReorderWindow } from './reorder-window.js';

const NO_FAULTS: DrawnAttemptFaults = {
  tamperBody: undefined,
  tamperSignature: undefined,
  oldSecret: false,
};

/** Delivers events to the webhooks of their companies: at least once, in no guaranteed order, with faults applied. */
export class DeliveryQueue {
  readonly #delays: Delays;
  readonly #windows = new Map<string, ReorderWindow>();
  readonly #idleListeners: (() => void)[] = [];
  #running = 0;
  #abort = new AbortController();

  constructor(
    private readonly companies: CompanyStore,
    private readonly faults: FaultStore,
    private readonly log: DeliveryLog,
    private readonly attempts: AttemptRunner,
    clock: EmulatorClock,
  ) {
    this.#delays = new Delays(clock);
  }

  /**
   * Starts the deliveries of an event. Resolves after the first attempt of the first delivery has ended.
   *
   * @param original the bytes to sign and send. Default: the event as JSON
   */
  enqueue(
    company: Company,
    environment: Environment,
    event: WebhookEvent,
    original: Uint8Array = Buffer.from(JSON.stringify(event)),
  ): Promise<DeliveryAttempt> {
    const faults = this.faults.forEvent(company.companyId);
    const { transactionId, externalReference, amount } = event.data;
    const identity = {
      companyId: company.companyId,
      environment,
      eventId: event.id,
      eventType: event.eventType,
      // The data of an event sent through the controls can be of any type.
      transactionId: typeof transactionId === 'string' ? transactionId : undefined,
      externalReference: typeof externalReference === 'string' ? externalReference : undefined,
      amount: typeof amount === 'number' ? amount : undefined,
    };
    const { signal } = this.#abort;
    const firstAttempts = faults.delays.map((delayMs, copy) => {
      const delivery: Delivery = {
        identity: { ...identity, copy },
        eventNumber: faults.number,
        company,
        original,
        signal,
      };
      return new Promise<DeliveryAttempt>((ended) => {
        void this.#track(() => this.#deliver(delivery, faults, delayMs, ended));
      });
    });
    return firstAttempts[0] as Promise<DeliveryAttempt>;
  }

  /**
   * Sends a logged delivery again: the same event, signed with the current secret, without faults. Resolves with the
   * new attempt after the attempt has ended.
   *
   * @throws EmulatorError `not_found`
   */
  async redeliver(id: string): Promise<DeliveryAttempt> {
    const { record, original } = this.log.get(id);
    const company = this.companies.get(record.companyId);
    const { signal } = this.#abort;
    const delivery: Delivery = { identity: record, eventNumber: 0, company, original, signal };
    const redelivery = this.attempts.create(delivery, 'redelivery', record.attempt + 1);
    await this.#track(() => this.attempts.run(delivery, redelivery, NO_FAULTS));
    return structuredClone(redelivery);
  }

  /** Resolves when all deliveries have ended, including scheduled redeliveries. */
  idle(): Promise<void> {
    if (this.#running === 0) return Promise.resolve();
    return new Promise((resolve) => this.#idleListeners.push(resolve));
  }

  /**
   * Skips the waiting times of all deliveries: delays, the wait for reordering, and the times before redeliveries.
   * Resolves when all deliveries have ended.
   */
  async flush(): Promise<void> {
    this.#delays.skipAll();
    try {
      await this.idle();
    } finally {
      this.#delays.stopSkipping();
    }
  }

  /** Cancels all deliveries and sends no further request for them. Resolves when all deliveries have ended. */
  async cancel(): Promise<void> {
    this.#abort.abort();
    this.#abort = new AbortController();
    await this.idle();
    this.#windows.clear();
  }

  async #deliver(
    delivery: Delivery,
    faults: DrawnEventFaults,
    delayMs: number,
    firstEnded: (record: DeliveryAttempt) => void,
  ): Promise<void> {
    const { signal, identity } = delivery;
    let record = this.attempts.create(delivery, identity.copy === 0 ? 'event' : 'duplicate', 1, [
      ...(faults.unsent === undefined ? [] : [faults.unsent]),
      ...(identity.copy > 0 ? ['duplicate'] : []),
      ...(delayMs > 0 ? ['delay'] : []),
      ...(faults.reorder ? ['reorder'] : []),
    ]);
    await this.#delays.wait(delayMs, signal);
    const endTurn = await this.#waitForTurn(delivery, faults);
    await this.attempts.run(delivery, record);
    endTurn();
    firstEnded(structuredClone(record));
    for (const [index, ms] of faults.redeliver.entries()) {
      if (record.state !== 'failed') return;
      record = this.attempts.create(delivery, 'retry', index + 2);
      await this.#delays.wait(ms, signal);
      await this.attempts.run(delivery, record);
    }
  }

  /**
   * If the fault `reorder` applies, waits for the delivery's turn. Returns a function that ends the turn, so that the
   * next delivery can be sent.
   */
  async #waitForTurn(
    { identity, signal }: Delivery,
    { reorder }: DrawnEventFaults,
  ): Promise<() => void> {
    if (!reorder) return () => undefined;
    const { companyId } = identity;
    let window = this.#windows.get(companyId);
    if (!window) {
      window = new ReorderWindow(this.#delays, () => this.faults.reorderStream(companyId));
      this.#windows.set(companyId, window);
    }
    return window.enter(reorder.window, reorder.maxWaitMs, signal);
  }

  async #track(work: () => Promise<void>): Promise<void> {
    this.#running++;
    try {
      await work();
    } finally {
      this.#running--;
      if (this.#running === 0) for (const resolve of this.#idleListeners.splice(0)) resolve();
    }
  }
}
