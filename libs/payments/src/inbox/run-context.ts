import type { PaymentEventContext } from '../events/payment-event.js';
import type { ClaimedDelivery } from './inbox-store.js';

/** The context of one run of a handler. What most handlers do not use is created on first use. */
export class RunContext implements PaymentEventContext {
  readonly company: string;
  readonly handler: string;
  readonly attempt: number;
  readonly receivedAt: Date;
  readonly newerHandled: boolean;
  readonly #body: Buffer;
  readonly #abort: AbortController;
  readonly #copy: { raw?: Buffer } = {};

  constructor(
    { company, handler, attempt, receivedAt, newerHandled }: ClaimedDelivery,
    body: Buffer,
    abort: AbortController,
    readonly commit: PaymentEventContext['commit'],
  ) {
    this.company = company;
    this.handler = handler;
    this.attempt = attempt;
    this.receivedAt = receivedAt;
    this.newerHandled = newerHandled;
    this.#body = body;
    this.#abort = abort;
    Object.freeze(this);
  }

  get raw(): Buffer {
    return (this.#copy.raw ??= Buffer.from(this.#body));
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }
}
