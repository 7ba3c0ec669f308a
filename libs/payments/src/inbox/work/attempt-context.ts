import type { Logger } from '@nestjs/common';
import type { ThrottledLog } from '../../errors/throttled-log.js';
import type { EventDispatcher } from '../../events/event-dispatcher.js';
import type { PaymentEventContext, PaymentEventSource } from '../../events/payment-event.js';
import type { PaymentsRuntime } from '../../runtime/payments-runtime.js';
import type { Observers } from '../../telemetry/observers.js';
import type { StoredBodies } from '../store/body-codec.js';
import type { HandlerCatalogCache } from '../store/handler-catalog-cache.js';
import type { ClaimedDelivery, InboxStore } from '../store/inbox-store.js';

/** The services that all attempts of this process share. */
export interface AttemptServices {
  readonly runtime: PaymentsRuntime;
  readonly store: InboxStore;
  readonly logger: Logger;
  /** The throttled log for lines that many attempts may log at the same time. */
  readonly throttled: ThrottledLog;
  readonly catalog: Pick<HandlerCatalogCache, 'refresh' | 'takesElsewhere'>;
  readonly dispatcher: EventDispatcher;
  readonly bodies: StoredBodies;
  readonly observers: Observers;
}

/** The context of one attempt. It is created for each attempt, so it copies the body only on first use. */
export class AttemptContext implements PaymentEventContext {
  readonly company: string;
  readonly handler: string;
  readonly attempt: number;
  readonly receivedAt: Date;
  readonly source: PaymentEventSource;
  readonly #body: Buffer;
  readonly #abort: AbortController;
  #copy: Buffer | null = null;

  constructor(
    { company, handler, attempt, receivedAt, source }: ClaimedDelivery,
    body: Buffer,
    abort: AbortController,
    readonly commit: PaymentEventContext['commit'],
    readonly newerHandled: PaymentEventContext['newerHandled'],
  ) {
    this.company = company;
    this.handler = handler;
    this.attempt = attempt;
    this.receivedAt = receivedAt;
    this.source = source;
    this.#body = body;
    this.#abort = abort;
    Object.freeze(this);
  }

  get raw(): Buffer {
    // A private field can be set although the object is frozen.
    return (this.#copy ??= Buffer.from(this.#body));
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }
}
