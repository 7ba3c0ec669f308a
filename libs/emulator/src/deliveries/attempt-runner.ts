import { Logger } from '@nestjs/common';
import type { Company } from '../companies/company.js';
import { messageOf } from '../emulator-errors.js';
import type { DrawnAttemptFaults } from '../faults/delivery-faults.js';
import type { FaultStore } from '../faults/fault-store.js';
import type { EmulatorClock } from '../runtime/emulator-clock.js';
import type { RandomSource } from '../runtime/random-source.js';
import { Semaphore } from '../runtime/semaphore.js';
import type { DeliveryLog } from './delivery-log.js';
import type { DeliveryAttempt, DeliveryCause, DeliveryFailure } from './delivery-attempt.js';
import { composeRequest } from './delivery-request.js';
import { sendDelivery } from './delivery-sender.js';

export interface AttemptOptions {
  readonly serviceName: string;
  readonly fetch: typeof globalThis.fetch;
  /** Time limit of one attempt, in milliseconds. */
  readonly timeoutMs: number;
  /** Whether other machines can reach the emulator. */
  readonly remoteAccess: boolean;
  readonly concurrency: number;
  /** A function that is called with each attempt that has ended. If the function throws, the error is logged. */
  readonly onDelivery: (record: DeliveryAttempt) => void;
}

/** One delivery of an event, with all attempts of this delivery. */
export interface Delivery {
  readonly identity: Pick<
    DeliveryAttempt,
    | 'companyId'
    | 'environment'
    | 'eventId'
    | 'eventType'
    | 'transactionId'
    | 'externalReference'
    | 'amount'
    | 'copy'
  >;
  /** Number of the event, counted separately for each company. The faults of the event depend on this number. */
  readonly eventNumber: number;
  readonly company: Company;
  /** The event's bytes, before any tampering. */
  readonly original: Uint8Array;
  /** A signal that aborts when the emulator is reset or closed. */
  readonly signal: AbortSignal;
}

export class AttemptRunner {
  readonly #logger = new Logger('PaymentsEmulator');
  readonly #semaphore: Semaphore;

  constructor(
    private readonly faults: FaultStore,
    private readonly log: DeliveryLog,
    private readonly clock: EmulatorClock,
    private readonly random: RandomSource,
    private readonly options: AttemptOptions,
  ) {
    this.#semaphore = new Semaphore(options.concurrency);
  }

  /** Creates an attempt in the state `waiting` and adds it to the log. */
  create(
    delivery: Delivery,
    cause: DeliveryCause,
    attempt: number,
    faults: string[] = [],
  ): DeliveryAttempt {
    const { companyId, environment, eventId, eventType, transactionId } = delivery.identity;
    const { externalReference, amount, copy } = delivery.identity;
    const record: DeliveryAttempt = {
      id: this.random.id('delivery'),
      companyId,
      environment,
      eventId,
      eventType,
      transactionId,
      externalReference,
      amount,
      copy,
      cause,
      attempt,
      state: 'waiting',
      faults,
      createdAt: new Date(this.clock.now()).toISOString(),
      sentAt: undefined,
      durationMs: undefined,
      request: undefined,
      response: undefined,
      failure: undefined,
    };
    this.log.add({ record, original: delivery.original });
    return record;
  }

  /**
   * Runs an attempt and stores its result in `record`.
   *
   * @param faults the faults to apply. Default: faults that are drawn from the company's fault plan
   */
  async run(
    delivery: Delivery,
    record: DeliveryAttempt,
    faults?: DrawnAttemptFaults,
  ): Promise<void> {
    await this.#semaphore.run(async () => {
      const { companyId, copy } = delivery.identity;
      // The fault `off` can be switched on while an attempt waits for its delay or its turn.
      const off = faults === undefined && this.faults.deliveriesAreOff(companyId);
      if (off && !record.faults.includes('off')) record.faults.push('off');
      const failure = failureBeforeSending(delivery, record);
      if (failure) {
        const { code } = failure;
        record.failure = failure;
        record.state = code === 'cancelled' || code === 'dropped' ? code : 'skipped';
        return;
      }
      const drawn =
        faults ?? this.faults.forAttempt(companyId, delivery.eventNumber, copy, record.attempt);
      await this.#send(delivery, record, drawn);
    });
    this.#notify(structuredClone(record));
  }

  async #send(
    delivery: Delivery,
    record: DeliveryAttempt,
    faults: DrawnAttemptFaults,
  ): Promise<void> {
    const { company, original, signal } = delivery;
    const request = composeRequest({
      url: company.webhook.url as string,
      body: original,
      secret: faults.oldSecret ? this.#oldSecret(company) : company.webhook.secret,
      eventType: record.eventType,
      serviceName: this.options.serviceName,
      faults,
    });
    record.faults.push(
      ...Object.keys(faults).filter((name) => faults[name as keyof DrawnAttemptFaults]),
    );
    record.request = {
      url: request.url,
      headers: request.headers,
      body: Buffer.from(request.body).toString('utf8'),
    };
    const sentAt = this.clock.now();
    record.sentAt = new Date(sentAt).toISOString();
    record.state = 'sending';
    const result = await sendDelivery(request, { clock: this.clock, ...this.options }, signal);
    record.response = result.response;
    record.failure = result.failure;
    record.durationMs = this.clock.now() - sentAt;
    record.state = !result.failure
      ? 'delivered'
      : result.failure.code === 'cancelled'
        ? 'cancelled'
        : 'failed';
  }

  /** Calls `onDelivery`. An error that `onDelivery` throws must not affect the delivery. */
  #notify(record: DeliveryAttempt): void {
    try {
      this.options.onDelivery(record);
    } catch (error) {
      this.#logger.error(
        `The option onDelivery threw an error, which does not affect the delivery: ${messageOf(error)}`,
      );
    }
  }

  /**
   * Returns the webhook secret that was valid before the last rotation. If there was no rotation, returns an unrelated
   * secret, so that the receiver rejects the signature too.
   */
  #oldSecret(company: Company): string {
    return (
      company.previousWebhookSecret ??
      this.random.bytes('unrelated secret', company.companyId).toString('hex')
    );
  }
}

function failureBeforeSending(
  delivery: Delivery,
  record: DeliveryAttempt,
): DeliveryFailure | undefined {
  const { active, url } = delivery.company.webhook;
  if (delivery.signal.aborted) {
    return { code: 'cancelled', message: 'the emulator was reset or closed' };
  }
  const unsent = record.faults.find((fault) => fault === 'drop' || fault === 'off');
  if (unsent !== undefined) {
    return {
      code: 'dropped',
      message: `the event was not sent, because the fault "${unsent}" applied`,
    };
  }
  if (url === null) return { code: 'no_url', message: 'the company has no webhook URL' };
  if (!active) return { code: 'inactive', message: "the company's webhook is inactive" };
  return undefined;
}
