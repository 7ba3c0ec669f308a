import { createHash } from 'node:crypto';
import { inspect } from 'node:util';
import { isReference } from '../store/expectation-store.js';
import { TEST_EVENT_TYPE } from '../../events/payment-event.js';
import type { PaymentEvent } from '../../events/payment-event.js';
import type { HandlerCatalogCache } from '../store/handler-catalog-cache.js';
import type { EventSource, IncomingEvent, StoredSummary } from '../store/inbox-store.js';

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

/** The receiver's decisions about an event, and the data that it adds to the event. */
export interface IncomingDetails {
  /** The body, as `bodyCodec` encoded it. */
  readonly raw: Buffer;
  readonly stale: boolean;
  /** Whether the event's type is in `oncePerTransaction`, or a poll can find it. */
  readonly oncePerTransaction: boolean;
  /** Whether polls can find events of this type, so that the event fulfils expectations. */
  readonly polled: boolean;
  readonly summary: StoredSummary | null;
  /** The handlers that the store knows. */
  readonly catalog: HandlerCatalogCache;
}

/** The event as the store receives it. No delivery is assigned to a worker yet. */
export function toIncomingEvent(
  { company, event, storedId, headers, source }: VerifiedEvent,
  { raw, stale, oncePerTransaction, polled, summary, catalog }: IncomingDetails,
): IncomingEvent {
  const { transactionId, externalReference } = event.data;
  const orderingKey =
    typeof transactionId === 'string' && transactionId !== '' ? transactionId : null;
  return {
    company,
    id: storedId,
    eventType: event.eventType,
    occurredAt: new Date(event.timestamp),
    orderingKey,
    oncePerTransaction,
    raw,
    headers,
    stale,
    handlers: stale ? [] : catalog.matching(event.eventType, source),
    catalogVersion: catalog.current.version,
    assign: null,
    source,
    reference: isReference(externalReference) ? externalReference : null,
    summary,
    // No handler runs for a stale event, so the payment still needs an event.
    fulfils: polled && !stale,
  };
}

/**
 * Whether an event is older than `webhook.maxAgeMs`, so that the inbox may have deleted its id. Events of the type
 * `webhook.test` are never stale: a replay of one changes no payment.
 */
export function isStale(
  { eventType, timestamp }: Pick<PaymentEvent, 'eventType' | 'timestamp'>,
  nowMs: number,
  maxAgeMs: number,
): boolean {
  return nowMs - Date.parse(timestamp) > maxAgeMs && eventType !== TEST_EVENT_TYPE;
}

/** The log line about an event that was stored as stale. */
export function staleWarning(
  { company, id, eventType, occurredAt }: IncomingEvent,
  nowMs: number,
  maxAgeMs: number,
): string {
  const age = inWords(nowMs - occurredAt.getTime());
  return (
    `Event ${id} (company ${company}) of type "${eventType}" is from ${occurredAt.toISOString()}, ${age} ago, and ` +
    `"webhook.maxAgeMs" is ${inWords(maxAgeMs)}. It may be a replay of an event whose id was deleted, so it is stored as ` +
    'stale and no handler runs. If the event is only late, redrive it. If events can be this late, raise ' +
    '"webhook.maxAgeMs" and, with a durable inbox, "worker.knowMs".'
  );
}

const UNITS = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
  ['second', 1000],
] as const;

/** A duration in the largest unit that fits into it at least once, rounded down. */
function inWords(ms: number): string {
  const [unit, size] = UNITS.find((one) => ms >= one[1]) ?? UNITS[3];
  const count = Math.floor(ms / size);
  return `${count} ${unit}${count === 1 ? '' : 's'}`;
}
