import type { PaymentsRuntime } from '../../runtime/payments-runtime.js';
import type { ExpectationStore } from './expectation-store.js';
import type {
  ClaimedDelivery,
  DeliverySelection,
  EventFilter,
  EventPage,
  FailureCount,
  InboxActivity,
  InboxStats,
  IncomingEvent,
  Lease,
  StoredEvent,
  StoreReceipt,
} from './stored-event.js';

export type * from './expectation-store.js';
export type * from './stored-event.js';

/** Nest injection token of the {@link InboxStore} in use. */
export const INBOX_STORE = Symbol('PAYMENTS_INBOX_STORE');

/** The result of settling a delivery. */
export interface SettleResult {
  /** Whether the lease was valid and the delivery is settled. `false`: another attempt has the delivery. */
  readonly settled: boolean;
  /** Whether a delivery that waited for the same ordering key became claimable. */
  readonly nextDue: boolean;
}

/** The result of {@link InboxStore.commit}. */
export interface CommitResult<R> extends Pick<SettleResult, 'nextDue'> {
  /** The return value of the work. */
  readonly result: R;
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

/**
 * Stores events and their deliveries. Every operation is atomic, and no operation keeps a transaction open after it has
 * resolved. The guide has a diagram of the states of a delivery: it has every change of a state.
 *
 * **Leases.** A worker (one per process) registers, sends heartbeats, and leases the deliveries that it runs. A running
 * delivery stores the worker's id and a fencing token. {@link complete}, {@link fail}, {@link release} and
 * {@link commit} succeed exactly if the delivery is `running` and the token is the current one. They compare no clock.
 * The clock only decides when a worker that sends no heartbeats is dead.
 *
 * **Unknown outcomes.** A rejected operation may have taken effect, for example if the connection was cut before the
 * response arrived. So a worker whose {@link claim}, {@link claimSuspect} or assigning {@link receive} rejected may
 * lease deliveries that it does not know of, and no process would ever free them. It registers under a new id,
 * continues the heartbeats of the old id until its attempts and its other claims have ended, and then retires the old id
 * with a grace of 0.
 *
 * **Ordering.** Two deliveries of one company, handler and ordering key never run at the same time. A due delivery
 * whose key is running waits for its turn: it is not in the set that claims read, so the cost of a claim does not
 * depend on the backlog of one key. When a delivery stops being `running`, or a pending delivery is skipped, the next
 * waiting delivery of its key (the earliest due) becomes claimable. It is due now, or keeps its earlier due time.
 *
 * `Tx` is the type of the transaction that {@link commit} passes to its work.
 */
export interface InboxStore<Tx = unknown> {
  /** The promises of this store beyond the contract that all stores share. Constant for the lifetime of the store. */
  readonly capabilities: InboxCapabilities;

  /** The expected payments; see `PaymentExpectations`. */
  readonly expectations: ExpectationStore;

  /** Creates tables if necessary. Several processes may open one store at the same time. Called once, first. */
  open(): Promise<void>;

  /** Releases all resources. Called once, last; later calls reject. */
  close(): Promise<void>;

  /**
   * Adds a live worker, and its handlers to the catalog. The patterns of a handler are the patterns of all live workers
   * that have it. A handler that no live worker has keeps its last patterns. A new handler, or a change of patterns,
   * increments {@link HandlerCatalog.version}. Returns the catalog after that.
   */
  register(worker: WorkerRegistration): Promise<HandlerCatalog>;

  /**
   * Renews the heartbeat of a worker. Then declares every worker dead whose last heartbeat is older than its `leaseMs`,
   * and frees the running deliveries of all workers that are not live.
   *
   * A freed delivery of a dead worker becomes pending and due now, with the attempt added to the history as `lost`. The
   * attempt is counted only if the delivery was a suspect already; otherwise `attempts` decreases by one. The delivery
   * becomes a suspect ({@link ClaimedDelivery.crashes} increases by one). A freed delivery of a retired worker becomes
   * pending as after {@link release}: not counted and without an entry in the history, and a suspect only if it was one.
   *
   * If the previous heartbeat of this worker is older than its own `leaseMs`, the store declares no worker dead. The store may have
   * been unreachable for all workers, so the others also get the time to renew their heartbeats.
   *
   * A store whose search for these deliveries takes longer than a second may search less often than it renews heartbeats.
   */
  heartbeat(workerId: string): Promise<HeartbeatResult>;

  /**
   * Ends a worker on purpose. If it still leases deliveries, the leases stay valid for `graceMs` more milliseconds, and
   * the worker can settle the deliveries. After that, heartbeats of other workers free them. A store without its own clock may
   * count the grace from the next heartbeat of another worker.
   */
  retire(workerId: string, graceMs: number): Promise<void>;

  /** The handlers that any worker has registered and that were not removed. */
  catalog(): Promise<HandlerCatalog>;

  /**
   * Removes a handler from the catalog, unless a live worker has it, and skips its pending and dead deliveries.
   * Returns how many deliveries it skipped, or `null` if a live worker has the handler.
   */
  forgetHandler(handler: string): Promise<number | null>;

  /**
   * Stores events, each with a delivery to each of its handlers. A known event, also of the same call, is reported and
   * not stored again. Resolves once the events are as durable as the store makes them, with a receipt for each event in
   * their order. Rejects within a bounded time if the store is down.
   *
   * A delivery to a handler in {@link IncomingEvent.assign} is leased to that worker, exactly as a claim would lease
   * it, if the handler is not paused and no delivery of its ordering key and handler is running, waiting, or pending
   * and due. All other deliveries are stored as pending, due now.
   *
   * @throws PaymentsError `inbox_full`; none of the events was stored.
   */
  receive(events: readonly IncomingEvent[]): Promise<StoreReceipt[]>;

  /**
   * Leases due pending deliveries to the worker, except suspects: for each handler the earliest due first, at most its
   * limit. Counts an attempt of each. Leases no delivery of a paused handler. A due delivery whose ordering key is
   * running for the handler waits from now on. A store may lease nothing to a worker that is not live, here and on
   * receipt. If it leases a delivery to such a worker, the next heartbeat of any worker frees the delivery.
   */
  claim(request: ClaimRequest): Promise<ClaimedDelivery[]>;

  /** Leases at most one suspect of the named handlers, the earliest due. */
  claimSuspect(request: SuspectRequest): Promise<ClaimedDelivery | null>;

  /**
   * Whether the handler of a delivery has done another event of the same company and ordering key whose own time
   * (`occurredAt`) is later. A later event whose body was pruned counts as done by every handler.
   */
  newerHandled(lease: Lease): Promise<boolean>;

  /** Marks a delivery done. Like {@link fail} and {@link commit}, it adds the attempt to the history. */
  complete(lease: Lease): Promise<SettleResult>;

  /**
   * Records a failed attempt: the delivery is pending again and due in `retryInMs`, or dead if `retryInMs` is `null`.
   * At most 1,000 characters of the error are stored. Like {@link complete} and {@link commit}, it makes a suspect a
   * normal delivery again.
   */
  fail(lease: Lease, failure: { error: string; retryInMs: number | null }): Promise<SettleResult>;

  /** Makes the delivery pending again, due in `dueInMs` (default: now), without charging the attempt. */
  release(lease: Lease, dueInMs?: number): Promise<SettleResult>;

  /**
   * Runs `work` and marks the delivery done in one transaction. If `work` throws, or the lease is not valid any more,
   * nothing of the transaction is stored. The token is compared at the end of the transaction, so that a long `work`
   * blocks no other operation.
   *
   * @throws PaymentsError `lease_lost`; `commit_unsupported` if `capabilities.transactional` is false. Also throws what
   *   `work` throws.
   */
  commit<R>(lease: Lease, work: (tx: Tx) => R | Promise<R>): Promise<CommitResult<R>>;

  /**
   * Milliseconds until the first delivery of the named handlers becomes claimable by {@link claim}: 0 or less if one is
   * claimable now, `null` if there is none. Deliveries of paused handlers, waiting deliveries and suspects do not
   * count.
   */
  nextDueInMs(handlers: readonly string[]): Promise<number | null>;

  /**
   * Calls `listener` if a delivery may have become due through another process (or this one). It is a hint: calls may
   * be missing or superfluous. A store that is not shared need not call it: a process wakes its own worker. Returns a
   * function that removes the listener.
   */
  onWake(listener: () => void): () => void;

  /** The event with that id, with its body, headers, repeats and histories; `undefined` if the id is not known. */
  find(company: string, id: string): Promise<StoredEvent | undefined>;

  /**
   * Events by number of receipt, newest or oldest first, `limit` at a time (1 to 1,000). A call may end after 20,000 events that it
   * compared with the filter: the page has those that match, and `next`.
   */
  list(query: {
    readonly filter: EventFilter;
    readonly order: 'newest' | 'oldest';
    readonly limit: number;
    /** `next` of the previous page; `null` for the first. */
    readonly after: string | null;
  }): Promise<EventPage>;

  /**
   * Counts what is stored now, each count up to a cap. The cost does not depend on the number of events, except in memory,
   * where it takes a few milliseconds for 100,000.
   */
  stats(): Promise<InboxStats>;

  /**
   * Counts the failed deliveries that are pending, running or dead by handler, error and state. Reads at most the
   * 10,000 newest; `more`: there are others.
   */
  failures(): Promise<{ readonly counts: readonly FailureCount[]; readonly more: boolean }>;

  /**
   * The activity of the last `minutes` (1 to 1,440) closed minutes, from at least the 100,000 newest events. It reads them
   * in slices, so that no receive waits.
   *
   * @param bodiesMs as of {@link prune}: events that were received longer ago may have been pruned
   */
  activity(minutes: number, bodiesMs: number): Promise<InboxActivity>;

  /**
   * Makes dead, skipped and pending deliveries due again, and done ones if `force` is set. Ignores running deliveries
   * and pruned events. Adds a delivery if the event has none to the handler. `dueInMs[i]` is the delay until selection
   * `i` becomes due; a pending delivery becomes due then or earlier, never later. The attempts of a delivery start from
   * 0 again, unless it was pending. Returns how many deliveries it changed or added; a pending delivery counts.
   *
   * The first delivery that is added to a stale event makes the event count as the event of its transaction: it is not
   * stale any more, and fulfils expectations as on receipt if its type is in `fulfils`. The databases know
   * only the reference in its {@link IncomingEvent.summary}. If another event counts as the event of the transaction, nothing is added; see
   * {@link IncomingEvent.oncePerTransaction}.
   */
  redrive(
    selections: readonly DeliverySelection[],
    options: {
      readonly force: boolean;
      readonly dueInMs: readonly number[];
      /** The event types that fulfil expectations. Default: none. */
      readonly fulfils?: readonly string[];
    },
  ): Promise<number>;

  /** Marks pending and dead deliveries skipped, and makes suspects normal deliveries. Returns how many it skipped. */
  skip(selections: readonly DeliverySelection[]): Promise<number>;

  /** Stops (or, with `false`, restarts) the claims of a handler, or of all for `*`, in every process. */
  pause(handler: string, paused: boolean): Promise<void>;

  /**
   * Deletes old data, at most `limit` events at a time (1 to 10,000):
   *
   * - the bodies and deliveries of events that were received more than `bodiesMs` ago and whose deliveries are all done
   *   or skipped. A tombstone stays.
   * - tombstones of events that were received more than `tombstonesMs` ago and whose own time (`occurredAt`) is as long
   *   ago. The tombstone of an event from the future stays longer, so that every deleted event is older than
   *   `tombstonesMs`.
   * - expectations; see {@link ExpectationStore}.
   *
   * Returns how many events and expectations it changed. A call reads a bounded number of the old events that were not finished
   * when they became old, so an event that has finished since then may be pruned by a later call.
   */
  prune(request: {
    readonly bodiesMs: number;
    readonly tombstonesMs: number;
    readonly limit: number;
  }): Promise<number>;
}

/** The return value of `memoryInbox()`, `sqliteInbox()` and `postgresInbox()`: creates a store for each application. */
export interface InboxDefinition {
  /** Name of the inbox in messages, for example `memory`. */
  readonly name: string;
  /** A new store that is not opened yet. It uses the clock of `runtime` if it has no clock of its own. */
  create(runtime: PaymentsRuntime): InboxStore;
}
