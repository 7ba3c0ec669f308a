import type { PaymentEventContext, PaymentEventSource } from '../../events/payment-event.js';
import type { ClaimedDelivery } from '../store/inbox-store.js';

/** The context of one attempt. It is created for each attempt, so it copies the body only on first use. */
export class AttemptContext implements PaymentEventContext {
  readonly company: string;
  readonly handler: string;
  readonly attempt: number;
  readonly receivedAt: Date;
  readonly newerHandled: boolean;
  readonly source: PaymentEventSource;
  readonly #body: Buffer;
  readonly #abort: AbortController;
  #copy: Buffer | null = null;

  constructor(
    { company, handler, attempt, receivedAt, newerHandled, source }: ClaimedDelivery,
    body: Buffer,
    abort: AbortController,
    readonly commit: PaymentEventContext['commit'],
  ) {
    this.company = company;
    this.handler = handler;
    this.attempt = attempt;
    this.receivedAt = receivedAt;
    this.newerHandled = newerHandled;
    // No handler of the application gets a delivery of the source `expectation`.
    this.source = source as PaymentEventSource;
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
