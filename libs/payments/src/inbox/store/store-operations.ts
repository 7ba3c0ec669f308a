import type { DeliveryState } from './stored-event.js';

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
export interface SettleResult {
  /** Whether the lease was held and the delivery is settled. `false`: the delivery belongs to another run. */
  readonly settled: boolean;
  /** Whether a held delivery of the same ordering key became claimable. */
  readonly nextDue: boolean;
}

/** What became of a commit. */
export interface CommitResult<R> {
  /** What the work returned. */
  readonly result: R;
  /** See {@link SettleResult.nextDue}. */
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
export interface HeartbeatResult {
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

/** An operation that changes the state of a delivery. `new` is the start: no delivery yet. */
export interface DeliveryTransition {
  readonly from: DeliveryState | 'new';
  readonly to: DeliveryState;
  /** The method of `InboxStore` that changes it, and its case. */
  readonly by: string;
}

/** Every transition there is. The state diagram of the architecture page and the contract suite are compared with it. */
export const DELIVERY_TRANSITIONS: readonly DeliveryTransition[] = Object.freeze([
  { from: 'new', to: 'pending', by: 'receive' },
  { from: 'new', to: 'running', by: 'receive (assigned)' },
  { from: 'new', to: 'pending', by: 'redrive (added)' },
  { from: 'pending', to: 'running', by: 'claim' },
  { from: 'pending', to: 'running', by: 'claimSuspect' },
  { from: 'running', to: 'done', by: 'complete' },
  { from: 'running', to: 'done', by: 'commit' },
  { from: 'running', to: 'pending', by: 'fail (retry)' },
  { from: 'running', to: 'dead', by: 'fail (last attempt)' },
  { from: 'running', to: 'pending', by: 'release' },
  { from: 'running', to: 'pending', by: 'heartbeat (worker dead)' },
  { from: 'dead', to: 'pending', by: 'redrive' },
  { from: 'skipped', to: 'pending', by: 'redrive' },
  { from: 'done', to: 'pending', by: 'redrive (force)' },
  { from: 'pending', to: 'skipped', by: 'skip' },
  { from: 'dead', to: 'skipped', by: 'skip' },
  { from: 'pending', to: 'skipped', by: 'forgetHandler' },
  { from: 'dead', to: 'skipped', by: 'forgetHandler' },
] as const);
