import { WaitingRoom } from '../clock/waiting.room.js';
import type { EmulatorClock } from '../clock/emulator.clock.js';
import type { CompanyDirectory } from '../companies/company.directory.js';
import type { Company, Environment } from '../companies/company.record.js';
import type { AttemptFaults, EventFaults } from '../faults/delivery.fault.js';
import type { FaultDirectory } from '../faults/fault.directory.js';
import type { Delivery, DeliveryAttempts } from './delivery.attempt.js';
import type { DeliveryLog } from './delivery.log.js';
import type { DeliveryRecord } from './delivery.record.js';
import { ReorderWindow } from './reorder.window.js';
import type { WebhookEvent } from './webhook.event.js';

const NO_FAULTS: AttemptFaults = {
  tamperBody: undefined,
  tamperSignature: undefined,
  oldSecret: false,
};

/** Takes events to the webhooks of their companies: at least once, in no order, faults included. */
export class DeliveryQueue {
  readonly #room: WaitingRoom;
  readonly #windows = new Map<string, ReorderWindow>();
  readonly #idlers: (() => void)[] = [];
  #underWay = 0;
  #run = new AbortController();

  constructor(
    private readonly companies: CompanyDirectory,
    private readonly faults: FaultDirectory,
    private readonly log: DeliveryLog,
    private readonly attempts: DeliveryAttempts,
    clock: EmulatorClock,
  ) {
    this.#room = new WaitingRoom(clock);
  }

  /** Sends an event on its way. Resolves with the first attempt of its first delivery, ended. */
  enqueue(
    company: Company,
    environment: Environment,
    event: WebhookEvent,
  ): Promise<DeliveryRecord> {
    const plan = this.faults.onEvent(company.companyId);
    const { transactionId } = event.data;
    const identity = {
      companyId: company.companyId,
      environment,
      eventId: event.id,
      eventType: event.eventType,
      // An event sent by hand may say anything there.
      transactionId: typeof transactionId === 'string' ? transactionId : undefined,
    };
    const original = Buffer.from(JSON.stringify(event));
    const { signal } = this.#run;
    const firstAttempts = plan.delays.map((delayMs, copy) => {
      const delivery: Delivery = {
        identity: { ...identity, copy },
        eventNumber: plan.number,
        company,
        original,
        signal,
      };
      return new Promise<DeliveryRecord>((ended) => {
        void this.#track(() => this.#deliver(delivery, plan, delayMs, ended));
      });
    });
    return firstAttempts[0] as Promise<DeliveryRecord>;
  }

  /**
   * Sends a logged delivery once more: the same event, signed with the secret of today, no fault
   * striking. Resolves with the attempt, ended.
   *
   * @throws EmulatorError `not_found`
   */
  async redeliver(id: string): Promise<DeliveryRecord> {
    const { record, original } = this.log.get(id);
    const company = this.companies.get(record.companyId);
    const { signal } = this.#run;
    const delivery: Delivery = { identity: record, eventNumber: 0, company, original, signal };
    const again = this.attempts.open(delivery, 'redelivery', record.attempt + 1);
    await this.#track(() => this.attempts.make(delivery, again, NO_FAULTS));
    return structuredClone(again);
  }

  /** Resolves once nothing is under way, waits or is to be redelivered. */
  idle(): Promise<void> {
    if (this.#underWay === 0) return Promise.resolve();
    return new Promise((resolve) => this.#idlers.push(resolve));
  }

  /** Lets nothing wait any longer: delays, reordering and redelivery times. Then as `idle()`. */
  async flush(): Promise<void> {
    this.#room.hurry();
    try {
      await this.idle();
    } finally {
      this.#room.rest();
    }
  }

  /** Ends everything under way without another byte. */
  async cancel(): Promise<void> {
    this.#run.abort();
    this.#run = new AbortController();
    await this.idle();
    this.#windows.clear();
  }

  async #deliver(
    delivery: Delivery,
    plan: EventFaults,
    delayMs: number,
    firstEnded: (record: DeliveryRecord) => void,
  ): Promise<void> {
    const { signal, identity } = delivery;
    let record = this.attempts.open(delivery, identity.copy === 0 ? 'event' : 'duplicate', 1, [
      ...(plan.drop ? ['drop'] : []),
      ...(identity.copy > 0 ? ['duplicate'] : []),
      ...(delayMs > 0 ? ['delay'] : []),
      ...(plan.reorder ? ['reorder'] : []),
    ]);
    await this.#room.wait(delayMs, signal);
    const leave = await this.#turn(delivery, plan);
    await this.attempts.make(delivery, record);
    leave();
    firstEnded(structuredClone(record));
    for (const [index, ms] of plan.redeliver.entries()) {
      if (record.state !== 'failed') return;
      record = this.attempts.open(delivery, 'retry', index + 2);
      await this.#room.wait(ms, signal);
      await this.attempts.make(delivery, record);
    }
  }

  /** Waits for the delivery's turn, where its event is to be reordered. */
  async #turn({ identity, signal }: Delivery, { reorder }: EventFaults): Promise<() => void> {
    if (!reorder) return () => undefined;
    let window = this.#windows.get(identity.companyId);
    if (!window) {
      window = new ReorderWindow(this.#room, () => this.faults.onReorder(identity.companyId));
      this.#windows.set(identity.companyId, window);
    }
    return window.enter(reorder.window, reorder.maxWaitMs, signal);
  }

  async #track(work: () => Promise<void>): Promise<void> {
    this.#underWay++;
    try {
      await work();
    } finally {
      this.#underWay--;
      if (this.#underWay === 0) for (const resolve of this.#idlers.splice(0)) resolve();
    }
  }
}
