import type { EmulatorClock } from '../clock/emulator.clock.js';
import type { Company } from '../companies/company.record.js';
import type { AttemptFaults } from '../faults/delivery.fault.js';
import type { FaultDirectory } from '../faults/fault.directory.js';
import type { RandomSource } from '../random/random.source.js';
import { composeDelivery } from './delivery.composer.js';
import type { DeliveryLog } from './delivery.log.js';
import type { DeliveryCause, DeliveryFailure, DeliveryRecord } from './delivery.record.js';
import { sendDelivery } from './delivery.sender.js';
import { DeliverySlots } from './delivery.slots.js';

/** How attempts are made. */
export interface AttemptOptions {
  readonly serviceName: string;
  readonly fetch: typeof globalThis.fetch;
  /** Milliseconds for one attempt. */
  readonly timeoutMs: number;
  /** Whether others can reach the emulator. */
  readonly exposed: boolean;
  /** How many attempts may be under way at once. */
  readonly concurrency: number;
  /** Told of every attempt that has ended. Must not throw. */
  readonly onDelivery: (record: DeliveryRecord) => void;
}

/** One delivery of an event, through all its attempts. */
export interface Delivery {
  readonly identity: Pick<
    DeliveryRecord,
    'companyId' | 'environment' | 'eventId' | 'eventType' | 'transactionId' | 'copy'
  >;
  /** The event's number among those of the company, which its faults depend on. */
  readonly eventNumber: number;
  readonly company: Company;
  /** The event's bytes. */
  readonly original: Uint8Array;
  /** Aborted by a reset or a close. */
  readonly signal: AbortSignal;
}

/** Opens attempts in the log, makes them, and writes down how they ended. */
export class DeliveryAttempts {
  readonly #slots: DeliverySlots;

  constructor(
    private readonly faults: FaultDirectory,
    private readonly log: DeliveryLog,
    private readonly clock: EmulatorClock,
    private readonly random: RandomSource,
    private readonly options: AttemptOptions,
  ) {
    this.#slots = new DeliverySlots(options.concurrency);
  }

  /** A new attempt, in the log and waiting. */
  open(
    delivery: Delivery,
    cause: DeliveryCause,
    attempt: number,
    faults: string[] = [],
  ): DeliveryRecord {
    const { companyId, environment, eventId, eventType, transactionId, copy } = delivery.identity;
    const record: DeliveryRecord = {
      id: this.random.id('delivery'),
      companyId,
      environment,
      eventId,
      eventType,
      transactionId,
      cause,
      copy,
      attempt,
      state: 'waiting',
      faults,
      createdAt: new Date(this.clock.now()).toISOString(),
      sentAt: undefined,
      durationMs: undefined,
      request: undefined,
      answer: undefined,
      failure: undefined,
    };
    this.log.add({ record, original: delivery.original });
    return record;
  }

  /** Makes the attempt. `drawn` stands in for the company's faults. */
  async make(delivery: Delivery, record: DeliveryRecord, drawn?: AttemptFaults): Promise<void> {
    await this.#slots.run(async () => {
      const held = heldBack(delivery, record);
      if (held) {
        record.failure = held;
        record.state = held.code === 'cancelled' || held.code === 'dropped' ? held.code : 'skipped';
        return;
      }
      const { companyId, copy } = delivery.identity;
      const faults =
        drawn ?? this.faults.onAttempt(companyId, delivery.eventNumber, copy, record.attempt);
      await this.#send(delivery, record, faults);
    });
    this.options.onDelivery(structuredClone(record));
  }

  async #send(delivery: Delivery, record: DeliveryRecord, faults: AttemptFaults): Promise<void> {
    const { company, original, signal } = delivery;
    const outgoing = composeDelivery({
      url: company.webhook.url as string,
      body: original,
      secret: faults.oldSecret ? this.#oldSecret(company) : company.webhook.secret,
      eventType: record.eventType,
      serviceName: this.options.serviceName,
      faults,
    });
    record.faults.push(
      ...Object.keys(faults).filter((name) => faults[name as keyof AttemptFaults]),
    );
    record.request = {
      url: outgoing.url,
      headers: outgoing.headers,
      body: Buffer.from(outgoing.body).toString('utf8'),
    };
    const sentAt = this.clock.now();
    record.sentAt = new Date(sentAt).toISOString();
    record.state = 'sending';
    const outcome = await sendDelivery(outgoing, { clock: this.clock, ...this.options }, signal);
    record.answer = outcome.answer;
    record.failure = outcome.failure;
    record.durationMs = this.clock.now() - sentAt;
    record.state = !outcome.failure
      ? 'delivered'
      : outcome.failure.code === 'cancelled'
        ? 'cancelled'
        : 'failed';
  }

  /** A company whose secret was never rotated has no old one: a stranger's fails the same way. */
  #oldSecret(company: Company): string {
    return (
      company.previousWebhookSecret ??
      this.random.bytes('stranger', company.companyId).toString('hex')
    );
  }
}

/** Why an attempt is not sent at all, asked at the moment it would be. */
function heldBack(delivery: Delivery, record: DeliveryRecord): DeliveryFailure | undefined {
  const { active, url } = delivery.company.webhook;
  if (delivery.signal.aborted) {
    return { code: 'cancelled', message: 'the emulator was reset or closed' };
  }
  if (record.faults.includes('drop')) return { code: 'dropped', message: 'the drop fault struck' };
  if (url === null) return { code: 'no_url', message: 'the company has no webhook URL' };
  if (!active) return { code: 'inactive', message: "the company's webhook is inactive" };
  return undefined;
}
