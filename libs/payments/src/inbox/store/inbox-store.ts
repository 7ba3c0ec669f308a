import type { PaymentsRuntime } from '../../runtime/payments-runtime.js';
import type {
  ClaimedDelivery,
  ClaimRequest,
  CommitResult,
  HandlerCatalog,
  HeartbeatResult,
  InboxCapabilities,
  IncomingEvent,
  Lease,
  SettleResult,
  StoreReceipt,
  SuspectRequest,
  WorkerRegistration,
} from './store-operations.js';
import type {
  ActivityMinute,
  DeliverySelection,
  EventFilter,
  EventPage,
  InboxStats,
  StoredEvent,
} from './stored-event.js';

export type * from './store-operations.js';
export type * from './stored-event.js';

/** Nest injection token of the {@link InboxStore} in use. */
export const INBOX_STORE = Symbol('PAYMENTS_INBOX_STORE');

/**
 * Where events and their deliveries are stored. Every operation is atomic, and none holds a transaction open after
 * it has resolved. The states of a delivery and the operations that change them are in `DELIVERY_TRANSITIONS`.
 *
 * **Leases.** A worker (one per process) registers, sends heartbeats, and holds the deliveries that it runs. A
 * delivery that runs carries the worker's id and a fencing token. {@link complete}, {@link fail}, {@link release} and
 * {@link commit} succeed exactly if the delivery is `running` and the token is the current one; no clock is
 * compared. The clock decides only when a worker that sends no heartbeats is dead.
 *
 * **Unknown outcomes.** An operation that rejects may have taken effect, for example if the connection was cut before
 * the answer arrived. So a worker whose {@link claim}, {@link claimSuspect} or assigning {@link receive} rejected may
 * hold deliveries that it does not know of, and no process would ever free them. It registers under a new id, keeps up the
 * heartbeats of the old id until the runs that it knows of have ended, and then retires the old id with a grace of 0.
 *
 * **Ordering.** Two deliveries of one company, handler and ordering key never run at the same time. A due delivery
 * whose key is running is held: it leaves the set that claims read, so that the cost of a claim does not depend on
 * the backlog of one key. Each delivery that stops being `running`, and each pending one that is skipped, makes
 * the next held delivery of its key (the longest due) claimable, due now.
 *
 * `Tx` is the type of the transaction that {@link commit} passes to its work.
 */
export interface InboxStore<Tx = unknown> {
  /** What the store promises beyond the rest. Constant for the lifetime of the store. */
  readonly capabilities: InboxCapabilities;

  /** Creates tables if necessary. Several processes may open one store at the same time. Called once, first. */
  open(): Promise<void>;

  /** Releases all resources. Called once, last; later calls reject. */
  close(): Promise<void>;

  /**
   * Adds a live worker, and its handlers to the catalog. The patterns of a handler are those of all live workers
   * that have it; of a handler that no live worker has, those it had last. A new handler, or a change of patterns,
   * increments {@link HandlerCatalog.version}. Returns the catalog after that.
   */
  register(worker: WorkerRegistration): Promise<HandlerCatalog>;

  /**
   * Renews the heartbeat of a worker, then declares every worker dead whose last heartbeat is older than its
   * `leaseMs`, and frees the running deliveries of all workers that are not live: each becomes pending and due now,
   * with the attempt added to the history as `lost`. The attempt is charged only if it ran `alone`; otherwise
   * `attempts` decreases by one again. Each becomes a suspect ({@link ClaimedDelivery.crashes} increases by one).
   * The deliveries of a worker that retired are freed without a charge, without an entry in the history, and do not
   * become suspects; one that is a suspect already stays one, as after {@link release}.
   *
   * A heartbeat that is late itself, by more than the worker's `leaseMs`, declares no worker dead: the store may have
   * been out of reach for all workers, so the others get the time to renew theirs, too.
   */
  heartbeat(worker: string): Promise<HeartbeatResult>;

  /**
   * Ends a worker on purpose. If it still holds deliveries, it keeps them for `graceMs` more milliseconds, and can
   * settle them; then others free them. A worker that holds none is removed at once. A store without a clock of its own
   * may count the grace from the next heartbeat of another worker.
   */
  retire(worker: string, graceMs: number): Promise<void>;

  /** The handlers that any worker ever registered and that were not removed. */
  catalog(): Promise<HandlerCatalog>;

  /**
   * Removes a handler from the catalog, unless a live worker has it, and skips its pending and dead deliveries.
   * Returns how many deliveries it skipped, or `null` if a live worker has the handler.
   */
  forgetHandler(handler: string): Promise<number | null>;

  /**
   * Stores events, each with a delivery to each of its handlers. A known event, also within this batch, is reported
   * and changes nothing else. Resolves once the events are as durable as the store makes them, with a receipt for
   * each event in their order. Rejects within a bounded time if the store is down.
   *
   * A delivery to a handler in {@link IncomingEvent.assign} is stored as running under that worker, exactly as a
   * claim would do it, if the handler is not paused and no delivery of its ordering key and handler is running,
   * held, or pending and due. All others are stored as pending, due now.
   *
   * @throws PaymentsError `inbox_full`, having stored none of them.
   */
  receive(events: readonly IncomingEvent[]): Promise<StoreReceipt[]>;

  /**
   * Leases due pending deliveries that are no suspects to the worker: per handler at most its limit, the longest due
   * first, and counts an attempt of each. It skips paused handlers, and holds deliveries whose ordering key is
   * running for that handler. A store may lease nothing to a worker that is not live, here and on receipt; if it leases
   * to one, the next heartbeat of any worker frees the delivery.
   */
  claim(request: ClaimRequest): Promise<ClaimedDelivery[]>;

  /**
   * Leases the longest due suspect of the named handlers, at most one. Without `alone`, only one with a single
   * crash; with `alone`, any, and the delivery is marked as running alone until it is settled or freed.
   */
  claimSuspect(request: SuspectRequest): Promise<ClaimedDelivery | null>;

  /** Marks a delivery done. Like {@link fail} and {@link commit}, it adds the attempt to the history. */
  complete(lease: Lease): Promise<SettleResult>;

  /**
   * Records a failed attempt: pending again in `retryInMs`, or dead if that is `null`. Of the error, at most 1,000
   * characters are stored. Like {@link complete} and {@link commit}, it makes a suspect a normal delivery again.
   */
  fail(lease: Lease, failure: { error: string; retryInMs: number | null }): Promise<SettleResult>;

  /** Makes the delivery pending again, due in `dueInMs` (default: now), without charging the attempt. */
  release(lease: Lease, dueInMs?: number): Promise<SettleResult>;

  /**
   * Runs `work` and marks the delivery done in one transaction. If `work` throws, or the lease was lost, nothing
   * of it is stored. It compares the token at the end of the transaction, so a long `work` blocks no other operation.
   *
   * @throws PaymentsError `lease_lost`; `commit_unsupported` if `capabilities.transactional` is false; and what
   *   `work` throws.
   */
  commit<R>(lease: Lease, work: (tx: Tx) => R | Promise<R>): Promise<CommitResult<R>>;

  /**
   * Milliseconds until the first delivery of the named handlers becomes claimable by {@link claim}, 0 or less if one
   * is now; `null` if there is none. Paused handlers, held deliveries and suspects do not count.
   */
  nextDueInMs(handlers: readonly string[]): Promise<number | null>;

  /**
   * Calls `listener` if a delivery may have become due through another process (or this one). It is a hint: calls may
   * be missing or superfluous. Returns a function that removes the listener.
   */
  onWake(listener: () => void): () => void;

  /** The event of that id, with its body, headers, repeats and histories, if it is known. */
  find(company: string, id: string): Promise<StoredEvent | undefined>;

  /** Events by receipt, newest or oldest first, `limit` at a time (1 to 1,000). */
  list(query: {
    readonly filter: EventFilter;
    readonly order: 'newest' | 'oldest';
    readonly limit: number;
    /** `next` of the previous page; `null` for the first. */
    readonly after: string | null;
  }): Promise<EventPage>;

  /** Counts of what is stored now, each up to a cap. Its cost does not depend on the number of events. */
  stats(): Promise<InboxStats>;

  /**
   * Writes the activity of every closed minute that is not written yet, at most the last 1,440, from the stored events
   * and deliveries. A minute is closed 10 s after its end; the last two written minutes are written again, for
   * transactions that committed late. Idempotent, and safe in several processes at once.
   */
  summarize(): Promise<void>;

  /**
   * The last `minutes` (1 to 1,440) closed minutes that {@link summarize} covered, the oldest first, each once, with
   * zeros where nothing happened. Empty before the first {@link summarize}.
   */
  activity(minutes: number): Promise<ActivityMinute[]>;

  /**
   * Makes deliveries due again: dead and skipped ones, pending ones, and done ones if `force` is set. It ignores
   * running ones and pruned events. It adds a delivery if the event has none to the handler. `dueInMs[i]` is when
   * selection `i` becomes due; a pending delivery becomes due then or earlier, never later. Attempts start from 0
   * again, except for pending ones. Returns how many deliveries it changed or added; a pending delivery counts.
   */
  redrive(
    selections: readonly DeliverySelection[],
    options: { readonly force: boolean; readonly dueInMs: readonly number[] },
  ): Promise<number>;

  /** Marks pending and dead deliveries skipped, and makes suspects normal deliveries. Returns how many it skipped. */
  skip(selections: readonly DeliverySelection[]): Promise<number>;

  /** Stops (or, with `false`, restarts) the claims of a handler, or of all for `*`, in every process. */
  pause(handler: string, paused: boolean): Promise<void>;

  /**
   * Deletes, at most `limit` events at a time (1 to 10,000): the bodies and deliveries of events received more than
   * `bodiesMs` ago whose deliveries are all done or skipped, leaving a tombstone; and tombstones of events that were
   * received more than `tombstonesMs` ago and whose own time (`occurredAt`) is as long ago: an event from the
   * future is remembered longer, so that every deleted event is older than `tombstonesMs`. Returns how many events
   * it changed. Activity older than 1,440 minutes is deleted too, and not counted.
   */
  prune(request: {
    readonly bodiesMs: number;
    readonly tombstonesMs: number;
    readonly limit: number;
  }): Promise<number>;
}

/** The return value of `memoryInbox()` and the like: how to create a store, so that each application has its own. */
export interface InboxDefinition {
  /** For messages, e.g. `memory`. */
  readonly name: string;
  /** A new store, not opened yet. It uses the time of `runtime` if it has no clock of its own. */
  create(runtime: PaymentsRuntime): InboxStore;
}
