import type { StoredSummary } from './stored-event.js';
import type { DeliveryState, EventSource } from './stored-event.js';

/** A verified event that a store is to receive. */
export interface IncomingEvent {
  /** Company whose secret signed the webhook request. 1 to 100 characters of `A-Z a-z 0-9 . _ ~ -`. */
  readonly company: string;
  /** The event's id: 1 to 255 characters without control characters. */
  readonly id: string;
  /** 1 to 255 characters without control characters. */
  readonly eventType: string;
  /** The event's own time (its `timestamp`). */
  readonly occurredAt: Date;
  /**
   * Two deliveries of one company, handler and ordering key never run at the same time. `null`: deliveries of the event
   * run at any time. The key is the event's `data.transactionId`, of any length and content.
   */
  readonly orderingKey: string | null;
  /** The body: as it was signed, byte for byte, or as `bodyCodec` encoded it. */
  readonly raw: Buffer;
  /** The headers to store, by lower-case name; see {@link StoredEvent.headers}. */
  readonly headers: Readonly<Record<string, string>>;
  /**
   * Whether the event's type is handled once per transaction. Another event of the same company, type and
   * {@link orderingKey} is then a duplicate, whatever its id. A stale event counts as the event of its transaction only
   * when a redrive adds its first delivery. Without an ordering key, this has no effect.
   */
  readonly oncePerTransaction: boolean;
  /** Names of the handlers to deliver to, each once. Without handlers, the event is stored as unhandled or stale. */
  readonly handlers: readonly string[];
  /** The {@link HandlerCatalog.version} from which {@link handlers} was computed. */
  readonly catalogVersion: number;
  /**
   * A worker with reserved slots for some of {@link handlers}: the store may lease these deliveries to it at once.
   * `null` without such a worker.
   */
  readonly assign: { readonly workerId: string; readonly handlers: readonly string[] } | null;
  /** See {@link StoredEvent.stale}. A stale event has no handlers here. */
  readonly stale: boolean;
  /** How the event was received. */
  readonly source: EventSource;
  /** The event's `data.externalReference`, if it is a string that {@link NewExpectation.reference} allows; otherwise `null`. */
  readonly reference: string | null;
  /** What lists show of the event; `null` for nothing. */
  readonly summary: StoredSummary | null;
  /** Whether the event fulfils expectations of its transaction and reference; see {@link ExpectationStore}. */
  readonly fulfils: boolean;
}

/** The result of {@link InboxStore.receive} for one event. */
export interface StoreReceipt {
  /**
   * - `stored`: the event is new.
   * - `duplicate`: the event is known. Nothing was stored, except that an event with another id is added once to
   *   {@link StoredEvent.repeats} of the first event.
   * - `conflict`: the id is known with another {@link IncomingEvent.raw}. The first event is kept. With a `bodyCodec`,
   *   the receiver decodes and compares the bodies itself.
   * - `outdated`: the event is new, but {@link IncomingEvent.catalogVersion} is not the current version. Nothing was
   *   stored: call {@link InboxStore.catalog} and receive the event again.
   */
  readonly outcome: 'stored' | 'duplicate' | 'conflict' | 'outdated';
  /** Id of the stored event. For a duplicate, the id of the event that was stored first. */
  readonly id: string;
  /** Deliveries of the new event that are now leased to the worker in {@link IncomingEvent.assign}. */
  readonly claimed: readonly ClaimedDelivery[];
  /** Whether the new event has pending deliveries, which a worker has to claim. */
  readonly pending: boolean;
  /** The expectations that this receipt fulfilled; see {@link ExpectationStore}. */
  readonly fulfilled: readonly FulfilledExpectation[];
}

/** An expectation that an event fulfilled. */
export interface FulfilledExpectation {
  readonly reference: string;
  readonly transactionId: string | null;
  /** How the stored event was received. */
  readonly by: EventSource;
}

/** The right to run and settle one delivery. */
export interface Lease {
  readonly company: string;
  /** Id of the event. */
  readonly id: string;
  readonly handler: string;
  /** Fencing token: increases with every claim of the delivery, and when the delivery is freed. */
  readonly token: number;
  /** The store's own number of the event. Pass a lease back as the store returned it. */
  readonly seq: number;
}

/** Facts of an event for the spans of its attempts. */
export interface TracedEvent {
  /** The stored header `traceparent`; `null` if the event has none. */
  readonly traceparent: string | null;
  readonly eventType: string | null;
}

/** A delivery that was claimed, or assigned on receipt. */
export interface ClaimedDelivery extends Lease {
  /** The number of this attempt, from 1. */
  readonly attempt: number;
  /** See {@link StoredEvent.receivedAt}. */
  readonly receivedAt: Date;
  /** Milliseconds from {@link receivedAt} to the claim, both by the store clock. */
  readonly ageMs: number;
  /** See {@link StoredEvent.source}. */
  readonly source: EventSource;
  /** The stored body. */
  readonly raw: Buffer;
  /**
   * How many attempts in a row were lost because their process died or was cut off. A delivery with 1 or more is a
   * suspect: it may be the cause of the death.
   */
  readonly crashes: number;
  /** Facts of the event for the span of the attempt; absent: the span has neither the event type nor a link. */
  readonly traced?: TracedEvent;
}

/** The result of settling a delivery. */
export interface SettleResult {
  /** Whether the lease was valid and the delivery is settled. `false`: another attempt has the delivery. */
  readonly settled: boolean;
  /** Whether a delivery that waited for the same ordering key became claimable. */
  readonly nextDue: boolean;
}

/** The result of {@link InboxStore.commit}. */
export interface CommitResult<R> {
  /** The return value of the work. */
  readonly result: R;
  /** See {@link SettleResult.nextDue}. */
  readonly nextDue: boolean;
}

/** A handler as a process declares it. */
export interface HandlerDeclaration {
  /** 1 to 200 characters without control characters. */
  readonly name: string;
  /** Patterns of event types, as in `@OnPaymentEvent`. The store does not interpret them. */
  readonly patterns: readonly string[];
}

/** A worker, as it registers. */
export interface WorkerRegistration {
  /** A UUID. Each registration has its own. */
  readonly id: string;
  /** The worker is dead if it sends no heartbeat for this many milliseconds. 1,000 to 3,600,000. */
  readonly leaseMs: number;
  readonly handlers: readonly HandlerDeclaration[];
}

/** A handler that the store knows. */
export interface KnownHandler extends HandlerDeclaration {
  readonly firstSeenAt: Date;
  /** When a live worker last had the handler, to the accuracy of a heartbeat. */
  readonly lastSeenAt: Date;
}

/** The handlers that the store knows, by name. */
export interface HandlerCatalog {
  /** Increases with each change of names or patterns. From 0. */
  readonly version: number;
  readonly handlers: readonly KnownHandler[];
}

/** The result of {@link InboxStore.heartbeat}. */
export interface HeartbeatResult {
  /** `false`: the worker was declared dead (or never registered) and its deliveries were freed. */
  readonly alive: boolean;
  /** Whether suspects of the worker's handlers are pending, except suspects of paused handlers. */
  readonly suspects: boolean;
}

/** Which deliveries to claim. */
export interface ClaimRequest {
  /** Id of a registered worker. */
  readonly workerId: string;
  /** The handlers, and how many deliveries to claim of each at most: 1 or more. */
  readonly wanted: readonly { readonly handler: string; readonly limit: number }[];
}

/** Which suspect to claim. */
export interface SuspectRequest {
  /** Id of a registered worker. */
  readonly workerId: string;
  readonly handlers: readonly string[];
}

/** The promises that a store can and cannot keep. */
export interface InboxCapabilities {
  /**
   * Whether a received event survives the process. If not, the sender gets a 2xx response only after the handlers have
   * succeeded.
   */
  readonly durable: boolean;
  /**
   * Whether several processes may share the store. If not, the only worker is alive as long as the store is: the store may
   * leave out whatever follows from the death of a worker, so it frees no delivery and has no suspects.
   */
  readonly shared: boolean;
  /** Whether `context.commit` works: the handler's effects and the settled delivery in one transaction. */
  readonly transactional: boolean;
  /** Whether heartbeats and due times use a clock of the store instead of the process clocks of the workers. */
  readonly ownClock: boolean;
}

/** An operation that changes the state of a delivery. `new`: the delivery does not exist yet. */
export interface DeliveryTransition {
  readonly from: DeliveryState | 'new';
  readonly to: DeliveryState;
  /** The method of `InboxStore` that changes the state, and its case. */
  readonly by: string;
}

/** All transitions. Tests compare the state diagram of the documentation and each store with this list. */
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
