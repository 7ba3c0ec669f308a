/** A verified event on its way into a store. */
export interface IncomingEvent {
  /** Company the delivery was signed for. 1 to 100 characters of `A-Z a-z 0-9 . _ ~ -`. */
  readonly company: string;
  /** The event's id, 1 to 255 characters, none a control character. */
  readonly id: string;
  /** What makes two events one: unique together with the company. The event's id, unless options say else. */
  readonly dedupeKey: string;
  /** 1 to 255 characters, none a control character. */
  readonly eventType: string;
  /** The event's own time (its `timestamp`). */
  readonly occurredAt: Date;
  /**
   * Deliveries of one company, handler and ordering key never run at the same time. `null`: no such bound.
   * It is the event's `data.transactionId`, of any length and content.
   */
  readonly orderingKey: string | null;
  /** The body: as it was signed, byte for byte, or as `bodyCodec` encoded it. */
  readonly raw: Buffer;
  /** What is kept of the request's headers, by lower-case name; see {@link StoredEvent.headers}. */
  readonly headers: Readonly<Record<string, string>>;
  /** Names of the handlers to deliver to, each once. Without any, the event is kept as unhandled, or as stale. */
  readonly handlers: readonly string[];
  /** See {@link StoredEvent.stale}. A stale event has no handlers here. */
  readonly stale: boolean;
}

/**
 * Where one event stands with one handler.
 *
 * - `pending`: waits for its first attempt or, after a failure, for the next.
 * - `running`: leased to a worker.
 * - `done`: the handler succeeded.
 * - `dead`: out of attempts, or given up as unrecoverable: a dead letter, kept until it is redriven or skipped.
 * - `skipped`: an operator decided that it is not to run.
 */
export type DeliveryState = 'pending' | 'running' | 'done' | 'dead' | 'skipped';

/**
 * What to filter events by: the state of a delivery, or why the event has none.
 *
 * - `unhandled`: no handler took its type.
 * - `stale`: it was too old when it was received; see {@link StoredEvent.stale}.
 *
 * A redrive gives such an event deliveries, and it leaves the state. Tombstones and `webhook.test` events are in
 * neither.
 */
export type EventState = DeliveryState | 'unhandled' | 'stale';

/** One attempt of a delivery, as it ended. */
export interface DeliveryAttempt {
  /** From 1; a redrive begins to count again. */
  readonly attempt: number;
  /** When it was claimed, by the store's clock. */
  readonly startedAt: Date;
  /** By the store's clock. Of a lost one: when its lease ran out. */
  readonly endedAt: Date;
  /**
   * - `done`: the handler succeeded.
   * - `failed`: the handler failed, or was not run any more because its attempts were used up.
   * - `lost`: its lease ran out before it had a result: its process died or was cut off. It is known from the
   *   moment that somebody takes over.
   */
  readonly outcome: 'done' | 'failed' | 'lost';
  /** One line about the failure, at most 1,000 characters; `null` but for `failed`. */
  readonly error: string | null;
}

/** One event's delivery to one handler, as stored. */
export interface StoredDelivery {
  readonly handler: string;
  readonly state: DeliveryState;
  /** Attempts begun so far. */
  readonly attempts: number;
  /** One line about the last failure, `null` where there was none. */
  readonly lastError: string | null;
  /** When a pending one is due, or the lease of a running one ends; `null` in the other states. */
  readonly dueAt: Date | null;
  /** When it became done, dead or skipped; `null` before. */
  readonly finishedAt: Date | null;
  /**
   * The attempts that have ended, the oldest first, at most the last 20; a redrive keeps them. What was given
   * back without being charged is not among them. Empty in a list.
   */
  readonly history: readonly DeliveryAttempt[];
}

/** An event as stored. */
export interface StoredEvent {
  readonly company: string;
  readonly id: string;
  readonly eventType: string;
  readonly occurredAt: Date;
  readonly orderingKey: string | null;
  /** When the first copy was stored, by the store's clock. */
  readonly receivedAt: Date;
  /** The body as received, or `null` where it was pruned and only the tombstone is left. */
  readonly raw: Buffer | null;
  /**
   * One line about why `bodyCodec` could not decode the body, which is still stored; {@link raw} is `null`. Only
   * `PaymentInbox.get()` sets it.
   */
  readonly bodyError?: string;
  /**
   * What was kept of the request's headers, by lower-case name: `content-type`, `content-length`, `user-agent`,
   * `x-webhook-event`, `x-request-id` and `traceparent`, where the first copy had them, each at most 256
   * characters. Never the signature, nor anything else that proves who somebody is. Unsigned: only the body is
   * vouched for. Empty in a list, and of a tombstone.
   */
  readonly headers: Readonly<Record<string, string>>;
  /**
   * Whether its own time was more than `webhook.maxAgeMs` ago when it was received: it could have been a copy of an
   * event that is no longer remembered, so no handler ran for it. It stays true after a redrive.
   */
  readonly stale: boolean;
  /** One per handler, by handler name; empty for an event nobody handled, and for a tombstone. */
  readonly deliveries: readonly StoredDelivery[];
}

/** What became of one event that was received. */
export interface StoreReceipt {
  /**
   * - `stored`: new.
   * - `duplicate`: known; nothing was added.
   * - `conflict`: known under the same id with another {@link IncomingEvent.raw}; the original is kept. With a
   *   `bodyCodec`, the receiver decodes and compares the bodies itself.
   */
  readonly outcome: 'stored' | 'duplicate' | 'conflict';
  /** Id of the event that is stored: of the original, for a duplicate. */
  readonly id: string;
}

/** The right to run one delivery for a time. */
export interface Lease {
  readonly company: string;
  /** Id of the event. */
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
  /** Milliseconds since {@link receivedAt} when it was claimed, both by the store's clock. */
  readonly ageMs: number;
  readonly raw: Buffer;
  /**
   * Whether this handler has already done an event of the same company and ordering key whose own time
   * (`occurredAt`) is later than this one's.
   */
  readonly newerHandled: boolean;
  /**
   * Whether it was taken over from a lease that ran out: the attempt before this one ended without a result,
   * because its process died or was cut off.
   */
  readonly takenOver: boolean;
}

/** What a store can and cannot promise. */
export interface InboxCapabilities {
  /**
   * Whether a received event outlives the process. Where it does not, the sender is answered 2xx only once
   * the handlers have succeeded.
   */
  readonly durable: boolean;
  /** Whether several processes may share it. */
  readonly shared: boolean;
  /** Whether {@link InboxStore.commit} works: effects and settlement in one transaction. */
  readonly transactional: boolean;
  /** Whether its leases follow its own clock, whatever the clocks of the workers say. */
  readonly ownClock: boolean;
}

/** Which events: every field given must hold. Times are of receipt. */
export interface EventFilter {
  readonly company?: string;
  /** Exactly these ids, at most 1,000. */
  readonly ids?: readonly string[];
  readonly eventType?: string;
  /** Received at this time or later. */
  readonly from?: Date;
  /** Received before this time. */
  readonly to?: Date;
  /** With a delivery to this handler. */
  readonly handler?: string;
  /** With a delivery in this state (to that handler, if one is given), or without deliveries for this reason. */
  readonly state?: EventState;
  /** Where the id, ordering key or event type contains this text. */
  readonly search?: string;
}

/** A page of a list. */
export interface EventPage {
  /** Without their bodies, headers and histories: `raw` is `null`, the others are empty. */
  readonly events: readonly StoredEvent[];
  /** What to ask the next page with; `null` where this was the last. */
  readonly next: string | null;
}

/** Counts for a dashboard or a scraper. */
export interface InboxStats {
  /** Deliveries by handler and state; states without any are left out. */
  readonly deliveries: readonly {
    readonly handler: string;
    readonly state: DeliveryState;
    readonly count: number;
  }[];
  /** Stored events without a delivery, because no handler takes their type; `webhook.test` needs none. */
  readonly unhandled: number;
  /** Stored events without a delivery, because they were too old when they were received. */
  readonly stale: number;
  /** Milliseconds since the oldest delivery still pending or running was received; `null` without any. */
  readonly oldestPendingMs: number | null;
  /** What is paused: handler names, and `*` for all. */
  readonly paused: readonly string[];
}

/** One event whose deliveries are to run again, or not at all. */
export interface DeliverySelection {
  readonly company: string;
  readonly id: string;
  /** Handlers concerned. {@link InboxStore.redrive} adds a delivery where the event has none to one of them. */
  readonly handlers: readonly string[];
}
