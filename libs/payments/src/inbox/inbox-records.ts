/** A verified event on its way into a store. */
export interface IncomingEvent {
  /** Company the delivery was signed for. 1 to 100 characters of `A-Z a-z 0-9 . _ ~ -`. */
  readonly company: string;
  /** The event's id, 1 to 255 characters, none a control character. */
  readonly id: string;
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
  /**
   * The transaction id, if the event's type is processed once per transaction: another event of the same company, type
   * and `onceKey` is a duplicate, whatever its id. `null` for other types. Any length and content.
   */
  readonly onceKey: string | null;
  /** Names of the handlers to deliver to, each once. Without any, the event is stored as unhandled, or as stale. */
  readonly handlers: readonly string[];
  /** {@link HandlerCatalog.version} that {@link handlers} was made with. */
  readonly catalogVersion: number;
  /** A worker that has a free place for some of {@link handlers}, so that it can run them at once; or `null`. */
  readonly assign: { readonly worker: string; readonly handlers: readonly string[] } | null;
  /** See {@link StoredEvent.stale}. A stale event has no handlers here. */
  readonly stale: boolean;
}

/**
 * State of one event's delivery to one handler.
 *
 * - `pending`: waits for its first attempt or, after a failure, for the next.
 * - `running`: leased to a worker, under its id and a fencing token.
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
  /** By the store's clock. Of a lost one: when it was freed. */
  readonly endedAt: Date;
  /**
   * - `done`: the handler succeeded.
   * - `failed`: the handler failed, or was not run any more because its attempts were used up.
   * - `lost`: its process died or was cut off before the attempt had a result.
   */
  readonly outcome: 'done' | 'failed' | 'lost';
  /** One line about the failure, at most 1,000 characters; `null` but for `failed`. */
  readonly error: string | null;
}

/** One event's delivery to one handler, as stored. */
export interface StoredDelivery {
  readonly handler: string;
  readonly state: DeliveryState;
  /** Attempts that were started and charged so far. An attempt that was released or lost without a charge is not. */
  readonly attempts: number;
  /** One line about the last failure, `null` if there was none. */
  readonly lastError: string | null;
  /** When a pending one is due; `null` in the other states. Past for one that waits for its ordering key. */
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
  /** The body as received, or `null` if it was pruned and only the tombstone is left. */
  readonly raw: Buffer | null;
  /**
   * One line about why `bodyCodec` could not decode the body, which is still stored; {@link raw} is `null`. Only
   * `PaymentInbox.get()` sets it.
   */
  readonly bodyError?: string;
  /**
   * What was kept of the request's headers, by lower-case name: `content-type`, `content-length`, `user-agent`,
   * `x-webhook-event`, `x-request-id` and `traceparent`, if the first copy had them, each at most 256 characters. Never
   * the signature or a credential. The signature covers only the body. Empty in a list, and of a tombstone.
   */
  readonly headers: Readonly<Record<string, string>>;
  /**
   * Whether its own time was more than `webhook.maxAgeMs` ago when it was received: it could have been a copy of an
   * event that is no longer remembered, so no handler ran for it. It stays true after a redrive.
   */
  readonly stale: boolean;
  /**
   * Other events of the same company, type and transaction that were received after this one and not handled,
   * because the type is in `oncePerTransaction`: the oldest first, the last 20 at most. Empty in a list.
   */
  readonly repeats: readonly { readonly id: string; readonly receivedAt: Date }[];
  /** One per handler, by handler name; empty for an unhandled event and for a tombstone. */
  readonly deliveries: readonly StoredDelivery[];
}

/** What became of one event that was received. */
export interface StoreReceipt {
  /**
   * - `stored`: new.
   * - `duplicate`: known; nothing was added, except that an event with another id is added to
   *   {@link StoredEvent.repeats} of the first, once.
   * - `conflict`: known under the same id with another {@link IncomingEvent.raw}; the original is kept. With a
   *   `bodyCodec`, the receiver decodes and compares the bodies itself.
   * - `outdated`: the event is new, but {@link IncomingEvent.catalogVersion} is not the current version. Nothing
   *   was stored; call {@link InboxStore.catalog} and receive it again.
   */
  readonly outcome: 'stored' | 'duplicate' | 'conflict' | 'outdated';
  /** Id of the event that is stored: of the original, for a duplicate. */
  readonly id: string;
  /** Deliveries of the new event that run under the worker in {@link IncomingEvent.assign} now. */
  readonly claimed: readonly ClaimedDelivery[];
  /** Whether the new event has deliveries that are pending, so that a worker has to claim them. */
  readonly pending: boolean;
}

/** The right to run one delivery. */
export interface Lease {
  readonly company: string;
  /** Id of the event. */
  readonly id: string;
  readonly handler: string;
  /** Fencing token: increases with every claim of the delivery, and when it is freed. */
  readonly token: number;
  /** The store's own number of the event. Pass a lease back as the store returned it. */
  readonly seq: number;
}

/** A delivery that was claimed, or assigned on receipt. */
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
   * How many times in a row its process died, or was cut off, while it ran. With 1 or more, the delivery is a suspect:
   * it may be what the process died of.
   */
  readonly crashes: number;
}

/** What became of a lease that was to be settled. */
export interface Settlement {
  /** Whether the lease was held and the delivery is settled. `false`: the delivery belongs to another run. */
  readonly settled: boolean;
  /** Whether a held delivery of the same ordering key became claimable. */
  readonly nextDue: boolean;
}

/** What became of a commit. */
export interface Committed<R> {
  /** What the work returned. */
  readonly result: R;
  /** See {@link Settlement.nextDue}. */
  readonly nextDue: boolean;
}

/** A handler as a process declares it. */
export interface HandlerDeclaration {
  /** 1 to 200 characters, none a control character. */
  readonly name: string;
  /** Patterns of event types, as in `@OnPaymentEvent`. The store does not interpret them. */
  readonly patterns: readonly string[];
}

/** A worker, as it registers. */
export interface WorkerRegistration {
  /** Unique for each registration: a UUID. */
  readonly id: string;
  /** Without a heartbeat for this many milliseconds, the worker is dead. 1,000 to 3,600,000. */
  readonly leaseMs: number;
  readonly handlers: readonly HandlerDeclaration[];
}

/** A handler that the store knows. */
export interface KnownHandler extends HandlerDeclaration {
  readonly firstSeenAt: Date;
  /** When a live worker last had it, to the accuracy of a heartbeat. */
  readonly lastSeenAt: Date;
}

/** The handlers that the store knows, by name. */
export interface HandlerCatalog {
  /** Increases with each change of names or patterns. From 0. */
  readonly version: number;
  readonly handlers: readonly KnownHandler[];
}

/** The result of a heartbeat. */
export interface Heartbeat {
  /** `false`: the worker was declared dead (or never registered) and its deliveries were freed. */
  readonly alive: boolean;
  /** Whether suspects of the worker's handlers wait to be claimed, those of paused handlers aside. */
  readonly suspects: boolean;
}

/** What to claim. */
export interface ClaimRequest {
  /** Id of a registered worker. */
  readonly worker: string;
  /** How many deliveries of which handlers, each at least 1. */
  readonly wanted: readonly { readonly handler: string; readonly limit: number }[];
}

/** Which suspect to claim. */
export interface SuspectRequest {
  /** Id of a registered worker. */
  readonly worker: string;
  readonly handlers: readonly string[];
  /** Whether nothing else runs in this process, and nothing will until the suspect is settled. */
  readonly alone: boolean;
}

/** What a store can and cannot promise. */
export interface InboxCapabilities {
  /**
   * Whether a received event outlives the process. If not, the sender is answered 2xx only once
   * the handlers have succeeded.
   */
  readonly durable: boolean;
  /** Whether several processes may share it. */
  readonly shared: boolean;
  /** Whether {@link InboxStore.commit} works: effects and settlement in one transaction. */
  readonly transactional: boolean;
  /** Whether it uses a clock of its own for heartbeats and due times, not the clocks of the workers. */
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
  /** The id, ordering key or event type contains this text. */
  readonly search?: string;
}

/** A page of a list. */
export interface EventPage {
  /** Without their bodies, headers and histories: `raw` is `null`, the others are empty. */
  readonly events: readonly StoredEvent[];
  /** `after` of the query for the next page; `null` if this was the last. */
  readonly next: string | null;
}

/** Counts are exact up to this number. */
export const COUNT_CAP = 10_000;

/** A number of rows, counted up to {@link COUNT_CAP}. */
export interface CappedCount {
  /** 0 to 10,000. */
  readonly count: number;
  /** Whether there are more than {@link count}: "10,000+". */
  readonly more: boolean;
}

/** Counts for a dashboard or a scraper. */
export interface InboxStats {
  /** Unfinished deliveries by handler and state; pairs without any are absent. */
  readonly deliveries: readonly ({
    readonly handler: string;
    readonly state: 'pending' | 'running' | 'dead';
  } & CappedCount)[];
  /** Stored events without a delivery, because no handler takes their type; `webhook.test` needs none. */
  readonly unhandled: CappedCount;
  /** Stored events without a delivery, because they were too old when they were received. */
  readonly stale: CappedCount;
  /** Milliseconds since the oldest delivery that is pending or running was received; `null` without any. */
  readonly oldestPendingMs: number | null;
  /** What is paused: handler names, and `*` for all. */
  readonly paused: readonly string[];
}

/** What the inbox, or one handler, did in one minute. */
export interface ActivityCounts {
  /** Of the inbox: new events stored. Of a handler: of these, those with a delivery to it. */
  readonly received: number;
  /** Deliveries that became done. */
  readonly done: number;
  /** Attempts that ended as `failed` or `lost`, including those that left a delivery dead. */
  readonly failed: number;
  /** Deliveries that became dead. */
  readonly dead: number;
  /** Median of the milliseconds from receipt to done of the deliveries in `done` (nearest rank); `null` without any. */
  readonly p50Ms: number | null;
  /** 95th percentile of the same. */
  readonly p95Ms: number | null;
}

/** One closed minute of the inbox, all processes together. */
export interface ActivityMinute {
  /** Start of the minute, UTC, by the store's clock. */
  readonly startsAt: Date;
  /** All handlers together. */
  readonly total: ActivityCounts;
  /** By handler name; handlers without activity in that minute are absent. */
  readonly handlers: Readonly<Record<string, ActivityCounts>>;
}

/** One event whose deliveries are to run again, or not at all. */
export interface DeliverySelection {
  readonly company: string;
  readonly id: string;
  /** Handlers concerned. {@link InboxStore.redrive} adds a delivery if the event has none to one of them. */
  readonly handlers: readonly string[];
}
