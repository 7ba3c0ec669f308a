import { inspect } from 'node:util';
import type { PaymentEvent } from '../../events/payment-event.js';

/**
 * A delivery whose signature was checked. `WebhookGuard` makes it and `PaymentInbox.receive()` takes it.
 * Neither `JSON.stringify` nor `util.inspect` shows its payload.
 */
export class VerifiedEvent {
  readonly #event: PaymentEvent;
  readonly #raw: Buffer;
  readonly #headers: Readonly<Record<string, string>>;

  constructor(
    /** Id of the company whose secret signed it. */
    readonly company: string,
    event: PaymentEvent,
    raw: Buffer,
    /** When it arrived, on the runtime's monotonic clock in milliseconds: what the deadline counts from. */
    readonly arrivedAt: number,
    headers: Readonly<Record<string, string>> = {},
  ) {
    this.#event = event;
    this.#raw = raw;
    this.#headers = Object.freeze({ ...headers });
  }

  /** The parsed envelope. */
  get event(): PaymentEvent {
    return this.#event;
  }

  /** The body, byte for byte as it was signed. */
  get raw(): Buffer {
    return this.#raw;
  }

  /** What is kept of the request's headers; see `StoredEvent.headers`. None of them is signed. */
  get headers(): Readonly<Record<string, string>> {
    return this.#headers;
  }

  toJSON(): { company: string; id: string; eventType: string } {
    return { company: this.company, id: this.#event.id, eventType: this.#event.eventType };
  }

  [inspect.custom](): string {
    return `VerifiedEvent ${inspect(this.toJSON())}`;
  }
}
