import { createHash } from 'node:crypto';
import { inspect } from 'node:util';
import type { PaymentEvent } from '../../events/payment-event.js';
import type { EventSource } from '../store/inbox-store.js';

/** The start of the id of an event that a poll found. */
export const POLL_ID = 'poll:';
/** The start of the id of the event of an overdue payment. */
export const OVERDUE_ID = 'overdue:';
/** The start of the stored id of a webhook request's event whose own id begins like one of the module. */
const SERVICE_ID = 'service:';

const RESERVED_ID = new RegExp(`^(?:${[POLL_ID, OVERDUE_ID, SERVICE_ID].join('|')})`);

/** The prefix and the text or, if that is longer than 255 characters, the prefix and the hash of the text. */
export function idOf(prefix: string, text: string): string {
  const id = prefix + text;
  return id.length <= 255 ? id : prefix + createHash('sha256').update(text).digest('hex');
}

/**
 * An event from a webhook request whose signature is valid, or from a poll. `WebhookGuard` creates it and
 * `PaymentInbox.receive()` takes it. Neither `JSON.stringify` nor `util.inspect` shows its payload.
 */
export class VerifiedEvent {
  readonly #event: PaymentEvent;
  readonly #raw: Buffer;
  readonly #headers: Readonly<Record<string, string>>;

  constructor(
    /** Id of the company whose secret signed the webhook request. */
    readonly company: string,
    event: PaymentEvent,
    raw: Buffer,
    /**
     * When the webhook request arrived, on the runtime's monotonic clock in milliseconds. The deadline counts from
     * here.
     */
    readonly arrivedAt: number,
    headers: Readonly<Record<string, string>> = {},
    /** How the event was received. */
    readonly source: EventSource = 'webhook',
  ) {
    this.#event = event;
    this.#raw = raw;
    this.#headers = Object.freeze({ ...headers });
  }

  /** The parsed envelope. */
  get event(): PaymentEvent {
    return this.#event;
  }

  /**
   * The id under which the event is stored: the service's id. It gets the prefix `service:` if the module itself could
   * store another event under the same id: otherwise one of the two events would be a duplicate of the other.
   */
  get storedId(): string {
    const { id } = this.#event;
    return this.source === 'webhook' && RESERVED_ID.test(id) ? idOf(SERVICE_ID, id) : id;
  }

  /** The body, byte for byte as it was signed. */
  get raw(): Buffer {
    return this.#raw;
  }

  /** The stored headers of the webhook request; see `StoredEvent.headers`. The signature does not cover them. */
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
