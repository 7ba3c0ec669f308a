import type { PaymentsRuntime } from '../payments.runtime.js';

/** A verified event on its way into a store. */
export interface IncomingEvent {
  /** Company the delivery was signed for. */
  readonly company: string;
  /** The event's id. */
  readonly id: string;
  /** What makes two events one: unique together with the company. The event's id, unless options say else. */
  readonly dedupeKey: string;
  readonly eventType: string;
  /**
   * Deliveries of one handler and one ordering key never run at the same time. `null`: no such bound. It is
   * the event's `data.transactionId`.
   */
  readonly orderingKey: string | null;
  /** The body, byte for byte as it was signed. */
  readonly raw: Buffer;
  /** Names of the handlers to deliver to; none: the event is kept as `unhandled`. */
  readonly handlers: readonly string[];
}

/**
 * Where one event stands with one handler.
 *
 * - `pending`: waits for its first attempt or, after a failure, for the next.
 * - `running`: leased to a worker.
 * - `done`: the handler succeeded.
 * - `dead`: out of attempts, or given up as unrecoverable: a dead letter, kept until someone redrives it.
 */
export type DeliveryState = 'pending' | 'running' | 'done' | 'dead';

/** One event's delivery to one handler, as stored. */
export interface StoredDelivery {
  readonly handler: string;
  readonly state: DeliveryState;
  /** Attempts begun so far. */
  readonly attempts: number;
  /** One line about the last failure, `null` where there was none. */
  readonly lastError: string | null;
}

/** An event as stored. */
export interface StoredEvent {
  readonly company: string;
  readonly id: string;
  readonly eventType: string;
  /** When the first copy was stored. */
  readonly receivedAt: Date;
  /** The body as received, or `null` where the store has let go of it and keeps only the tombstone. */
  readonly raw: Buffer | null;
  /** One per handler; empty for an event nobody handled. */
  readonly deliveries: readonly StoredDelivery[];
}

/** What became of one event that was received. */
export interface StoreReceipt {
  /**
   * - `stored`: new.
   * - `duplicate`: known; nothing was added.
   * - `conflict`: known under the same id with another body; the original is kept.
   */
  readonly outcome: 'stored' | 'duplicate' | 'conflict';
  /** Id of the event that is stored: of the original, for a duplicate. */
  readonly id: string;
  /** Where each delivery of that event stands. */
  readonly deliveries: readonly StoredDelivery[];
}

/** The right to run one delivery for a time. */
export interface Lease {
  readonly company: string;
  readonly id: string;
  readonly handler: string;
  /** Fencing token: grows with every claim of the delivery, so that an earlier holder is known as stale. */
  readonly token: number;
}

/** A delivery that was claimed. */
export interface ClaimedDelivery extends Lease {
  /** Which attempt this is, from 1. */
  readonly attempt: number;
  readonly receivedAt: Date;
  readonly raw: Buffer;
}

/** What a store can and cannot promise. */
export interface InboxCapabilities {
  /**
   * Whether a received event outlives the process. Where it does not, the sender is answered 2xx only once
   * the handlers have succeeded.
   */
  readonly durable: boolean;
}

/**
 * Where events and their deliveries are kept. Every operation is atomic. Those that can lose a lease answer
 * `false` when they did; they never act on a stale one.
 */
export interface InboxStore {
  readonly capabilities: InboxCapabilities;

  /** Makes the store ready. Called once, before anything else. */
  open(): Promise<void>;

  /** Lets go of what the store holds. Called once, last. */
  close(): Promise<void>;

  /**
   * Stores events and a pending delivery for each of their handlers; an event that is known is reported and
   * changes nothing. Resolves once they are as safe as the store makes them, with a receipt for each event
   * in their order.
   *
   * @throws PaymentsError `inbox_full`, having stored none of them.
   */
  receive(events: readonly IncomingEvent[]): Promise<StoreReceipt[]>;

  /**
   * Leases at most `limit` due deliveries of the named handlers, the longest due first, for `leaseMs`, and
   * counts an attempt of each. A delivery whose lease ran out is due.
   */
  claim(request: {
    readonly handlers: readonly string[];
    readonly limit: number;
    readonly leaseMs: number;
  }): Promise<ClaimedDelivery[]>;

  /** Prolongs a lease to `leaseMs` from now. */
  extend(lease: Lease, leaseMs: number): Promise<boolean>;

  /** Marks a delivery done. */
  complete(lease: Lease): Promise<boolean>;

  /** Records a failure: due again in `retryInMs`, or dead where that is `null`. */
  fail(lease: Lease, failure: { error: string; retryInMs: number | null }): Promise<boolean>;

  /** Gives a delivery back that was not run: due at once, and the attempt is not counted. */
  release(lease: Lease): Promise<boolean>;

  /**
   * Makes every delivery of an event that is pending or dead due at once; the attempts of a dead one are
   * counted from the start. Nothing happens where the store has let go of the event's body.
   */
  expedite(company: string, id: string): Promise<void>;

  /**
   * Milliseconds until a delivery of the named handlers is due, or the lease of one ends; 0 or less if one may
   * be claimed now; `null` if none waits. One that waits for another of its ordering key is due with it.
   */
  nextDueInMs(handlers: readonly string[]): Promise<number | null>;

  /** The event of that id, if it is known. */
  find(company: string, id: string): Promise<StoredEvent | undefined>;
}

/** What `memoryInbox()` and its like return: how to make a store, so that each application gets its own. */
export interface InboxDefinition {
  /** For messages, e.g. `memory`. */
  readonly name: string;
  create(runtime: PaymentsRuntime): InboxStore;
}
